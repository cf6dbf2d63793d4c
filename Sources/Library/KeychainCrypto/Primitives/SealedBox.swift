package import Basics

/// AES-256-GCM as apps use it: a nonce of 12 bytes, the ciphertext and a tag of 16 bytes, one after the other.
///
/// Source: CryptoKit, `AES.GCM.SealedBox.combined`; RustCrypto, `aes-gcm`.
package enum SealedBox {
  private static let nonceSize = 12
  /// The size of a key, in bytes.
  package static let keySize = 32

  /// Decrypts a box.
  ///
  /// - Parameters:
  ///   - box: The bytes of the box.
  ///   - key: The key, 32 bytes.
  ///   - data: The additional data that was authenticated.
  /// - Returns: `nil` if the box is too short, if the key has the wrong size, or if the tag does not match.
  package static func open(
    _ box: [UInt8], key: SensitiveBytes, authenticating data: [UInt8]
  ) throws(DataProtectionError) -> SensitiveBytes? {
    guard box.count >= nonceSize + CipherContext.tagSize, key.count == keySize else { return nil }
    let context = try CipherContext(.aes256GCM, .decrypt)
    try key.withBytes { (key) throws(DataProtectionError) in
      try context.begin(key: key, iv: Array(box.prefix(nonceSize)))
    }
    try data.withRawBytes { (data) throws(DataProtectionError) in try context.authenticate(data) }
    let ciphertext = Array(box.dropFirst(nonceSize).dropLast(CipherContext.tagSize))
    let plaintext = try SensitiveBytes(count: ciphertext.count) { (target) throws(DataProtectionError) in
      try ciphertext.withRawBytes { (bytes) throws(DataProtectionError) in try context.update(bytes, into: target) }
    }
    return try context.finish(verifying: Array(box.suffix(CipherContext.tagSize))) ? plaintext : nil
  }
}
