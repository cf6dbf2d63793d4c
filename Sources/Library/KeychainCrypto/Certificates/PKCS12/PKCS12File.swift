import Basics
internal import COpenSSL
import KeychainFormats

/// The private keys and certificates of a PKCS#12 file (RFC 7292), as OpenSSL opens it.
public struct PKCS12File: Sendable {
  /// A private key of the file.
  public struct Key: Sendable {
    /// The key itself.
    public let material: KeyMaterial
    /// Its friendly name; `nil` if it has none. Hostile text.
    public let label: String?
    /// What links it to its certificate within the file (`localKeyID`); `nil` if it has none.
    public let localKeyID: [UInt8]?
  }

  /// In the order of the file.
  public private(set) var keys: [Key] = []
  /// In the order of the file.
  public private(set) var certificates: [CertificateFacts] = []

  /// A larger file is refused unread; real ones have a few thousand bytes.
  public static let maximumByteCount = 1 << 20
  /// Rounds of key derivation that a file may ask for in all, its code's among them.
  public static let maximumRoundCount = 10_000_000
  /// Bags inside of bags.
  static let maximumDepth = 8

  /// Opens a file.
  ///
  /// - Parameters:
  ///   - der: The whole file.
  ///   - password: As the person types it; an empty one opens also a file made without any.
  /// - Throws: `.wrongPassword` where the password does not fit, or the file was changed, which its code does not tell
  ///   apart; `.malformed`, `.overLimit`; `.unsupported` for a key derivation or a key that keychains do not store.
  public init(der: [UInt8], password: borrowing Secret) throws(MaterialError) {
    guard der.count <= Self.maximumByteCount else {
      throw MaterialError(
        .overLimit, "it has \(Amounts.bytes(der.count)); the limit is \(Amounts.grouped(Self.maximumByteCount))")
    }
    let file = try PKCS12Handle(der: der)
    var rounds = RoundAllowance(left: Self.maximumRoundCount)
    try file.takeCode(from: &rounds)
    let bags = try password.withBytes { (bytes) throws(MaterialError) in
      try file.bags(PKCS12Password(bytes, opens: file), &rounds)
    }
    (keys, certificates) = (bags.keys, bags.certificates)
  }

  /// The certificate of a key; `nil` if the file has none.
  public func certificate(of key: Key) -> CertificateFacts? {
    certificates.first { $0.publicKeyHash == key.material.applicationLabel }
  }
}

/// What is left of the work that a file may cost.
struct RoundAllowance {
  var left: Int

  mutating func take(_ count: Int) throws(MaterialError) {
    guard (0...left).contains(count) else {
      throw MaterialError(
        .overLimit,
        "its key derivation takes more than \(Amounts.grouped(PKCS12File.maximumRoundCount)) iterations in total")
    }
    left -= count
  }

  /// The rounds that an algorithm of PKCS#12 or PKCS#5 asks for.
  ///
  /// - Parameter parameters: DER: salt and rounds, or PBES2's or PBMAC1's derivation and what follows (RFC 8018, A.4, A.5).
  mutating func take(parameters: UnsafeRawBufferPointer) throws(MaterialError) {
    var outer = ASN1Cursor(parameters)
    var fields = try outer.next(.sequence, "the parameters of an encryption").cursor
    if fields.nextTag == .sequence {
      var derivation = try fields.next(.sequence, "a key derivation").cursor
      let name = try derivation.next(.objectIdentifier, "the name of a key derivation").contents
      guard name.elementsEqual(Self.pbkdf2) else {
        throw MaterialError(.unsupported, "its key derivation is not supported")
      }
      fields = try derivation.next(.sequence, "the parameters of a key derivation").cursor
    }
    _ = try fields.next(.octetString, "a salt")
    let digits = try fields.nextUnsigned("a number of iterations")
    guard digits.count <= 4 else { return try take(.max) }
    try take(digits.reduce(0) { $0 << 8 | Int($1) })
  }

  /// 1.2.840.113549.1.5.12
  private static let pbkdf2: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x05, 0x0C]
}
