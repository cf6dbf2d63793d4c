import Basics
internal import COpenSSL
import KeychainFormats

/// The private keys and certificates in a PKCS#12 file (RFC 7292), decrypted by OpenSSL.
package struct PKCS12File: Sendable {
  /// A private key of the file.
  package struct Key: Sendable {
    /// The key.
    package let material: KeyMaterial
    /// The friendly name, or `nil` if there is none. Untrusted text.
    package let label: String?
    /// The identifier that the key shares with its certificate in the file (`localKeyID`), or `nil` if there is none.
    package let localKeyID: [UInt8]?
  }

  /// The keys in the order of the file.
  package private(set) var keys: [Key] = []
  /// The certificates in the order of the file.
  package private(set) var certificates: [CertificateAttributes] = []

  /// The maximum number of bytes of a file; real ones have a few thousand.
  package static let maximumByteCount = 1 << 20
  /// The maximum number of iterations of key derivation for a file, including its authentication code.
  package static let maximumRoundCount = 10_000_000
  /// The deepest nesting of bags.
  static let maximumDepth = 8

  /// Decrypts a file.
  ///
  /// - Parameters:
  ///   - der: The contents of the file.
  ///   - password: The password as the user typed it. An empty password also decrypts a file without a password.
  /// - Throws:
  ///   - `.wrongPassword` if the password is wrong or the file was changed. These causes cannot be distinguished.
  ///   - `.unsupported` for a key derivation or key that is not supported.
  ///   - `.malformed` or `.overLimit`.
  package init(der: [UInt8], password: borrowing Secret) throws(CertificateError) {
    guard der.count <= Self.maximumByteCount else {
      throw CertificateError(
        .overLimit,
        "it has \(HumanReadable.bytes(der.count)); the limit is \(HumanReadable.grouped(Self.maximumByteCount))")
    }
    let file = try PKCS12Handle(der: der)
    var budget = IterationBudget(remaining: Self.maximumRoundCount)
    try file.deductMACIterations(from: &budget)
    let bags = try password.withBytes { (bytes) throws(CertificateError) in
      try file.bags(PKCS12Password(bytes, matching: file), &budget)
    }
    (keys, certificates) = (bags.keys, bags.certificates)
  }

  /// Returns the certificate of a key, or `nil` if the file has none.
  package func certificate(of key: Key) -> CertificateAttributes? {
    certificates.first { $0.publicKeyHash == key.material.applicationLabel }
  }
}

/// The number of iterations that a file may still require.
struct IterationBudget {
  var remaining: Int

  mutating func deduct(_ count: Int) throws(CertificateError) {
    guard (0...remaining).contains(count) else {
      throw CertificateError(
        .overLimit,
        "its key derivation takes more than \(HumanReadable.grouped(PKCS12File.maximumRoundCount)) iterations in total")
    }
    remaining -= count
  }

  /// Deducts the iterations of a PKCS#12 or PKCS#5 algorithm.
  ///
  /// - Parameter parameters: The DER of salt and iterations, or of PBES2's or PBMAC1's derivation (RFC 8018, A.4, A.5).
  mutating func deduct(parameters: UnsafeRawBufferPointer) throws(CertificateError) {
    var outer = ASN1Cursor(parameters)
    var fields = try outer.next(.sequence, "the parameters of an encryption").cursor
    if fields.nextTag == .sequence {
      var derivation = try fields.next(.sequence, "a key derivation").cursor
      let name = try derivation.next(.objectIdentifier, "the name of a key derivation").contents
      guard name.elementsEqual(Self.pbkdf2) else {
        throw CertificateError(.unsupported, "its key derivation is not supported")
      }
      fields = try derivation.next(.sequence, "the parameters of a key derivation").cursor
    }
    _ = try fields.next(.octetString, "a salt")
    let digits = try fields.nextUnsigned("a number of iterations")
    guard digits.count <= 4 else { return try deduct(.max) }
    try deduct(digits.reduce(0) { $0 << 8 | Int($1) })
  }

  /// The object identifier 1.2.840.113549.1.5.12.
  private static let pbkdf2: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x05, 0x0C]
}
