import Basics
public import KeychainFormats

/// Private keys that only the chip that wrapped them opens again.
///
/// The form is this project's own: what a Secure Enclave writes is not known. Wrapped by RFC 3394 under
/// HMAC-SHA-256(UID, `secure enclave key 1 ` and the protection class).
extension HardwareUID {
  /// - Parameters:
  ///   - number: A private number of P-256, 32 bytes.
  ///   - protection: The class whose key has to be in memory where it is used, which the bytes are bound to.
  /// - Returns: 40 bytes.
  /// - Throws: `.malformed` for another size; `.cryptoFailed`.
  public borrowing func wrapEnclaveKey(
    _ number: borrowing Secret, for protection: ProtectionClass
  ) throws(DataProtectionError) -> [UInt8] {
    guard number.count == Self.size else {
      throw DataProtectionError(.malformed, "a private number of \(number.count) bytes, not \(Self.size)")
    }
    return try KeyWrap.wrap(number, with: try enclaveKey(protection))
  }

  /// The private number again.
  ///
  /// - Returns: `nil` for bytes that another chip wrapped, or for another class, or that were changed.
  /// - Throws: `.cryptoFailed`.
  public borrowing func unwrapEnclaveKey(
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
