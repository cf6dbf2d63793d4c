import Basics
internal import KeychainFormats

/// The ciphers of the boxes of database items: AES-256-GCM with a nonce of 32 bytes and nothing authenticated beside them.
///
/// Not to be used from two threads at once: `DatabaseKeys` holds it under a lock.
struct BoxWorkspace: ~Copyable {
  private let encryption: CipherContext
  private let decryption: CipherContext
  /// For items of the versions before, in the same tables.
  let olderItems: SealingWorkspace

  init() throws(DataProtectionError) {
    let encryption = try CipherContext(.aes256GCM, .encrypt)
    let decryption = try CipherContext(.aes256GCM, .decrypt)
    let olderItems = try SealingWorkspace()
    self.encryption = encryption
    self.decryption = decryption
    self.olderItems = olderItems
  }

  /// - Parameter nonce: 32 bytes, fresh for each box.
  borrowing func seal(
    _ plaintext: SensitiveBytes, key: borrowing Secret, nonce: [UInt8]
  ) throws(DataProtectionError) -> Sealed {
    try key.withBytes { (bytes) throws(DataProtectionError) in try encryption.begin(key: bytes, longNonce: nonce) }
    return try encryption.seal(plaintext, header: [])
  }

  /// `nil` where the tag does not match.
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
