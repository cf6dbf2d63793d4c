internal import COpenSSL
internal import KeychainFormats

/// The digests in the names of Apple's key algorithms.
///
/// Source: Apple `SecKey.h`; FIPS 180-4.
package enum KeyDigest: String, Sendable, CaseIterable {
  /// SHA-1, 20 bytes.
  case sha1 = "SHA1"
  /// SHA-224, 28 bytes.
  case sha224 = "SHA224"
  /// SHA-256, 32 bytes.
  case sha256 = "SHA256"
  /// SHA-384, 48 bytes.
  case sha384 = "SHA384"
  /// SHA-512, 64 bytes.
  case sha512 = "SHA512"

  /// The size of a digest, in bytes.
  package var size: Int {
    switch self {
    case .sha1: 20
    case .sha224: 28
    case .sha256: 32
    case .sha384: 48
    case .sha512: 64
    }
  }

  var handle: OpaquePointer? {
    switch self {
    case .sha1: EVP_sha1()
    case .sha224: EVP_sha224()
    case .sha256: EVP_sha256()
    case .sha384: EVP_sha384()
    case .sha512: EVP_sha512()
    }
  }

  /// Returns the digest of a message.
  ///
  /// - Throws: `.failed` if OpenSSL does not support the digest.
  package func digest(of message: [UInt8]) throws(CertificateError) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: size)
    guard EVP_Digest(message, message.count, &result, nil, handle, nil) == 1 else { throw .openSSL("EVP_Digest") }
    return result
  }
}
