import Basics
import KeychainFormats

/// The key for the records in the manifest of an encrypted iOS 10.0 backup. No other version encrypts single records.
///
/// It is derived from the password in one step: the first 16 bytes of the SHA-1 of the password and a salt in the
/// manifest.
/// Source: dinosec/iphone-dataprotection, pull request 30, which reads backups of iOS 10.0.2.
package final class ManifestRecordKey: Sendable {
  private let secret: Secret

  private static let byteCount = 16
  /// The initialization vector, the same for every record.
  private static let initializationVector = [UInt8](0..<16)

  /// Derives the key.
  ///
  /// - Parameters:
  ///   - password: The password in the Unicode form that unlocks the backup's keybag.
  ///   - salt: The salt in the manifest.
  /// - Throws: `.cryptoFailed`.
  package init(password: borrowing Secret, salt: [UInt8]) throws(DataProtectionError) {
    let passwordAndSalt = password.withBytes { bytes in
      Secret(count: bytes.count + salt.count) { target in
        target.copyMemory(from: bytes)
        UnsafeMutableRawBufferPointer(rebasing: target[bytes.count...]).copyBytes(from: salt)
      }
    }
    let digest = try Secret(count: 20) { (target) throws(DataProtectionError) in
      let context = try DigestContext(.sha1)
      try passwordAndSalt.withBytes { (bytes) throws(DataProtectionError) in try context.update(bytes) }
      try context.finish(into: target)
    }
    secret = digest.withBytes { Secret(copying: UnsafeRawBufferPointer(rebasing: $0[..<Self.byteCount])) }
  }

  /// Decrypts a record.
  ///
  /// - Parameter record: The encrypted bytes, without base64.
  /// - Throws: `.malformed` if the length is zero or not a multiple of 16, or if the padding is invalid. The record is
  ///   then damaged or was encrypted with another key.
  package func open(_ record: [UInt8]) throws(DataProtectionError) -> [UInt8] {
    let size = FileCipher.blockSize
    guard !record.isEmpty, record.count.isMultiple(of: size) else {
      throw DataProtectionError(.malformed, "its \(record.count) bytes are not a multiple of \(size)")
    }
    let context = try CipherContext(.aes128CBC, .decrypt)
    try secret.withBytes { (key) throws(DataProtectionError) in
      try context.begin(key: key, iv: Self.initializationVector)
    }
    var plaintext = try [UInt8](count: record.count) { (output) throws(DataProtectionError) in
      try record.withRawBytes { (input) throws(DataProtectionError) in try context.update(input, into: output) }
    }
    guard let paddingCount = FileCipher.paddingCount(of: plaintext) else {
      throw DataProtectionError(.malformed, "the manifest's password and salt do not decrypt it")
    }
    plaintext.removeLast(paddingCount)
    return plaintext
  }
}
