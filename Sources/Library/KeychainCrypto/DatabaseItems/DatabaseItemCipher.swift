import Basics
import KeychainFormats

/// The ciphers of the boxes of database items: AES-256-GCM with a nonce of 32 bytes and no additional data.
///
/// Not to be used from two threads at once: `DatabaseKeys` protects it with a lock.
struct DatabaseItemCipher: ~Copyable {
  private let encryption: CipherContext
  private let decryption: CipherContext
  /// The cipher for items of earlier versions in the same tables.
  let olderItems: ItemCipher

  init() throws(DataProtectionError) {
    let encryption = try CipherContext(.aes256GCM, .encrypt)
    let decryption = try CipherContext(.aes256GCM, .decrypt)
    let olderItems = try ItemCipher()
    self.encryption = encryption
    self.decryption = decryption
    self.olderItems = olderItems
  }

  /// Encrypts the contents of a box.
  ///
  /// - Parameter nonce: 32 bytes, new for each box.
  borrowing func seal(
    _ plaintext: SensitiveBytes, key: borrowing Secret, nonce: [UInt8]
  ) throws(DataProtectionError) -> Sealed {
    try key.withBytes { (bytes) throws(DataProtectionError) in try encryption.begin(key: bytes, longNonce: nonce) }
    return try encryption.seal(plaintext, header: [])
  }

  /// Returns the plaintext, or `nil` if the tag does not match.
  borrowing func open(
    _ box: ArchivedBox, key: borrowing Secret
  ) throws(DataProtectionError) -> SensitiveBytes? {
    var isIntact = false
    let plaintext = try SensitiveBytes(count: box.ciphertext.count) { (output) throws(DataProtectionError) in
      try key.withBytes { (bytes) throws(DataProtectionError) in
        try decryption.begin(key: bytes, longNonce: box.nonce)
      }
      isIntact = try decryption.open(Sealed(ciphertext: box.ciphertext, tag: box.tag), header: [], into: output)
    }
    return isIntact ? plaintext : nil
  }
}
