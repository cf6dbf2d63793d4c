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
  /// The maximum number of key derivation iterations for a file, including the iterations for its authentication code.
  package static let maximumIterationCount = 10_000_000
  /// The maximum depth to which bags are nested.
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
    var budget = IterationBudget(remaining: Self.maximumIterationCount)
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
