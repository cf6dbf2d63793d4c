import Basics

/// The keybag of a device: the keybag itself (`DATA`) and a signature of exactly those bytes (`SIGN`).
///
/// The keybag of a backup has no signature. Source: iphone-dataprotection, `keystore/keybag.py`.
package struct SignedKeybag: Sendable, Hashable {
  /// The outer records in their original order, including unknown ones.
  private let records: [Keybag.Record]
  /// The keybag in `DATA`.
  package let keybag: Keybag
  /// The signed bytes.
  package let signedBytes: [UInt8]
  /// The signature, HMAC-SHA1, 20 bytes.
  package let signature: [UInt8]

  /// The length of a signature, in bytes.
  static let signatureByteCount = 20

  /// Reads the outer records and the keybag in them. The signature is not checked.
  ///
  /// - Throws: `.malformed` for an absent or repeated record or a signature that does not have 20 bytes; the errors of
  ///   reading the keybag, with offsets from its own start.
  package init(parsing bytes: [UInt8]) throws(FormatError) {
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

  /// Combines a keybag with the signature of `keybag.serialized()`.
  ///
  /// - Throws: `.unencodable` for a signature that does not have 20 bytes.
  package init(_ keybag: Keybag, signature: [UInt8]) throws(FormatError) {
    guard signature.count == Self.signatureByteCount else {
      throw FormatError(.keybag, .unencodable, "SIGN of \(signature.count) bytes, not \(Self.signatureByteCount)")
    }
    self.keybag = keybag
    self.signature = signature
    signedBytes = keybag.serialized()
    records = [Keybag.Record(.data, signedBytes), Keybag.Record(.signature, signature)]
  }

  /// Returns the bytes of the outer records, which equal the original bytes if nothing was changed.
  package func serialized() -> [UInt8] { Keybag.serialized(records) }
}
