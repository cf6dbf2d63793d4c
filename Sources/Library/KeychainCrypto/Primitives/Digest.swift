import Basics
import COpenSSL

/// Computes SHA-1 and SHA-256. SHA-1 is used only where Apple's formats require it, never for security.
package enum Digest {
  /// Returns the SHA-1, 20 bytes.
  package static func sha1(_ bytes: [UInt8]) throws(DataProtectionError) -> [UInt8] {
    try bytes.withRawBytes { (buffer) throws(DataProtectionError) in try sha1(buffer) }
  }

  /// Returns the SHA-1 of a buffer, 20 bytes.
  package static func sha1(_ bytes: UnsafeRawBufferPointer) throws(DataProtectionError) -> [UInt8] {
    let context = try DigestContext(.sha1)
    try context.update(bytes)
    return try context.finish()
  }

  /// Returns the SHA-256, 32 bytes.
  package static func sha256(_ bytes: [UInt8]) throws(DataProtectionError) -> [UInt8] {
    try bytes.withRawBytes { (buffer) throws(DataProtectionError) in try sha256(buffer) }
  }

  /// Returns the SHA-256 of a buffer, 32 bytes.
  package static func sha256(_ bytes: UnsafeRawBufferPointer) throws(DataProtectionError) -> [UInt8] {
    let context = try DigestContext(.sha256)
    try context.update(bytes)
    return try context.finish()
  }
}

extension Digest {
  /// The version of OpenSSL's libcrypto in this process.
  package static var libraryVersion: String {
    "\(OPENSSL_version_major()).\(OPENSSL_version_minor()).\(OPENSSL_version_patch())"
  }
}
