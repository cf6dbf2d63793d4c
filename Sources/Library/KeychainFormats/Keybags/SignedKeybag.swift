import Basics

/// The bag of a device: the bag itself (`DATA`) and a signature over exactly those bytes (`SIGN`).
///
/// Backup bags have no such envelope. Source: iphone-dataprotection, `keystore/keybag.py`.
public struct SignedKeybag: Sendable, Hashable {
  /// Outer records in the order they came, unknown ones among them.
  private let records: [Keybag.Record]
  /// The bag inside of `DATA`.
  public let keybag: Keybag
  /// The bytes the signature covers.
  public let signedBytes: [UInt8]
  /// HMAC-SHA1, twenty bytes.
  public let signature: [UInt8]

  /// How long a signature is.
  static let signatureByteCount = 20

  /// Reads the outer records and the bag inside of them. The signature is not checked here.
  ///
  /// - Throws: `.malformed` for an absent or repeated record or a signature that is not twenty bytes, and what reading
  ///   the bag throws, its offsets counted from the bag's own start.
  public init(parsing bytes: [UInt8]) throws(FormatError) {
    let records = try Keybag.records(of: bytes)
    for tag in [Keybag.Tag.data, .signature] {
      var offset = 0
      var count = 0
      for record in records {
        if record.tag == tag { count += 1 }
        guard count < 2 else { throw FormatError(.keybag, .malformed, "\(tag) occurs twice", offset: offset) }
        offset += record.byteCount
      }
      guard count == 1 else { throw FormatError(.keybag, .malformed, "it has no \(tag)", offset: offset) }
    }
    let signedBytes = records.value(of: .data) ?? []
    let signature = records.value(of: .signature) ?? []
    guard signature.count == Self.signatureByteCount else {
      throw FormatError(.keybag, .malformed, "SIGN of \(signature.count) bytes, not \(Self.signatureByteCount)")
    }
    self.records = records
    self.signedBytes = signedBytes
    self.signature = signature
    keybag = try Keybag(parsing: signedBytes)
  }

  /// Puts a bag and the signature over `keybag.serialized()` together.
  ///
  /// - Throws: `.unencodable` for a signature that is not twenty bytes.
  public init(_ keybag: Keybag, signature: [UInt8]) throws(FormatError) {
    guard signature.count == Self.signatureByteCount else {
      throw FormatError(.keybag, .unencodable, "SIGN of \(signature.count) bytes, not \(Self.signatureByteCount)")
    }
    self.keybag = keybag
    self.signature = signature
    signedBytes = keybag.serialized()
    records = [Keybag.Record(.data, signedBytes), Keybag.Record(.signature, signature)]
  }

  /// The bytes of the outer records; of a bag that was read and not changed, the same bytes.
  public func serialized() -> [UInt8] { Keybag.serialized(records) }
}
