import Basics
package import KeychainFormats

/// Wraps private keys so that only the same chip can unwrap them.
///
/// The format is Keyhaul's own, because the format of a Secure Enclave is not public. A key is wrapped with RFC 3394. The
/// wrapping key is the HMAC-SHA-256, with the UID, of `secure enclave key 1 ` and the protection class.
extension HardwareUID {
  /// Wraps a private key.
  ///
  /// - Parameters:
  ///   - scalar: The private scalar on P-256, 32 bytes.
  ///   - protection: The class that the key is bound to, whose class key must be in memory for using it.
  /// - Returns: 40 bytes.
  /// - Throws: `.malformed` for another size; `.cryptoFailed`.
  package borrowing func wrapEnclaveKey(
    _ scalar: borrowing Secret, for protection: ProtectionClass
  ) throws(DataProtectionError) -> [UInt8] {
    guard scalar.count == Self.size else {
      throw DataProtectionError(.malformed, "a private number of \(scalar.count) bytes, not \(Self.size)")
    }
    return try KeyWrap.wrap(scalar, with: try enclaveKey(protection))
  }

  /// Unwraps a private key.
  ///
  /// - Returns: The private scalar, or `nil` if the bytes were changed, or were wrapped by another chip or for another
  ///   class.
  /// - Throws: `.cryptoFailed`.
  package borrowing func unwrapEnclaveKey(
    _ wrapped: [UInt8], for protection: ProtectionClass
  ) throws(DataProtectionError) -> Secret? {
    guard wrapped.count == Self.size + KeyWrap.overhead else { return nil }
    return try KeyWrap.unwrap(wrapped, with: try enclaveKey(protection))
  }

  private borrowing func enclaveKey(_ protection: ProtectionClass) throws(DataProtectionError) -> Secret {
    var key = try withBytes { (bytes) throws(DataProtectionError) in
      try MessageAuthentication.code(
        .sha256, key: bytes, message: Array("secure enclave key 1 \(protection.rawValue)".utf8))
    }
    defer { key.withUnsafeMutableBytes { wipe($0) } }
    return Secret(copying: key)
  }
}
