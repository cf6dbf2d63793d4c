import Basics
import KeychainFormats

/// The ciphers for decrypting and encrypting items. They are reused, because OpenSSL takes longer to look up
/// a cipher than to encrypt an item.
///
/// Not to be used from two threads at once: `ClassKeys` protects it with a lock.
struct ItemCipher: ~Copyable {
  private let blockEncryption: CipherContext
  private let gcmEncryption: CipherContext
  private let gcmDecryption: CipherContext

  init() throws(DataProtectionError) {
    let blockEncryption = try CipherContext(.aes256ECB, .encrypt)
    let gcmEncryption = try CipherContext(.aes256GCM, .encrypt)
    let gcmDecryption = try CipherContext(.aes256GCM, .decrypt)
    self.blockEncryption = blockEncryption
    self.gcmEncryption = gcmEncryption
    self.gcmDecryption = gcmDecryption
  }

  // MARK: Keys

  borrowing func wrap(
    _ key: borrowing Secret, with wrappingKey: borrowing Secret
  ) throws(DataProtectionError) -> [UInt8] {
    try wrappingKey.withBytes { (bytes) throws(DataProtectionError) in try blockEncryption.begin(key: bytes) }
    return try key.withBytes { (bytes) throws(DataProtectionError) in try KeyWrap.wrap(bytes, blockEncryption) }
  }

  // MARK: Device items: AES-256-GCM with a fixed nonce and the blob's header as authenticated data

  borrowing func sealWithNonce(
    _ nonce: [UInt8], header: [UInt8], _ plaintext: SensitiveBytes, key: borrowing Secret
  ) throws(DataProtectionError) -> Sealed {
    try key.withBytes { (bytes) throws(DataProtectionError) in try gcmEncryption.begin(key: bytes, iv: nonce) }
    return try gcmEncryption.seal(plaintext, header: header)
  }

  /// Returns the plaintext, or `nil` if the tag does not match.
  borrowing func openWithNonce(
    _ nonce: [UInt8], header: [UInt8], _ sealed: Sealed, key: borrowing Secret
  ) throws(DataProtectionError) -> SensitiveBytes? {
    var isIntact = false
    let plaintext = try SensitiveBytes(count: sealed.ciphertext.count) { (output) throws(DataProtectionError) in
      isIntact = try open(sealed, nonce: nonce, header: header, key: key, into: output)
    }
    return isIntact ? plaintext : nil
  }

  /// Decrypts into `output`.
  ///
  /// - Returns: Whether the tag matches; otherwise `output` must not be used.
  private borrowing func open(
    _ sealed: Sealed, nonce: [UInt8], header: [UInt8], key: borrowing Secret, into output: UnsafeMutableRawBufferPointer
  ) throws(DataProtectionError) -> Bool {
    try key.withBytes { (bytes) throws(DataProtectionError) in try gcmDecryption.begin(key: bytes, iv: nonce) }
    return try gcmDecryption.open(sealed, header: header, into: output)
  }

  // MARK: Backup items: AES-256-GCM with an IV of length zero

  borrowing func sealWithEmptyNonce(
    _ plaintext: SensitiveBytes, key: borrowing Secret
  ) throws(DataProtectionError) -> Sealed {
    try EmptyNonceGCM.withKey(key, blockEncryption) { (nonce) throws(DataProtectionError) in
      // Encrypting zeros gives the key stream.
      try key.withBytes { (bytes) throws(DataProtectionError) in
        try gcmEncryption.begin(key: bytes, iv: EmptyNonceGCM.zeroNonce)
      }
      let zeroIVStream = try SensitiveBytes(count: plaintext.count) { (stream) throws(DataProtectionError) in
        try gcmEncryption.update(UnsafeRawBufferPointer(stream), into: stream)
      }
      let ciphertext = [UInt8](count: plaintext.count) { output in
        zeroIVStream.withBytes { output.copyMemory(from: $0) }
        nonce.shift(keyStream: output)
        plaintext.withBytes { xor(output, with: $0) }
      }
      // Encrypting these bytes with the zero IV gives the ciphertext. They are secret, because together with the
      // ciphertext they reveal the key stream.
      let zeroIVPlaintext = SensitiveBytes(count: plaintext.count) { output in
        zeroIVStream.withBytes { output.copyMemory(from: $0) }
        ciphertext.withRawBytes { xor(output, with: $0) }
      }
      let sealed = try sealWithNonce(EmptyNonceGCM.zeroNonce, header: [], zeroIVPlaintext, key: key)
      return Sealed(ciphertext: ciphertext, tag: nonce.converted(tag: sealed.tag))
    }
  }

  /// Returns the plaintext, or `nil` if the tag does not match, in which case the decrypted bytes are overwritten.
  borrowing func openWithEmptyNonce(
    _ sealed: Sealed, key: borrowing Secret
  ) throws(DataProtectionError) -> SensitiveBytes? {
    try EmptyNonceGCM.withKey(key, blockEncryption) { (nonce) throws(DataProtectionError) in
      let converted = Sealed(ciphertext: sealed.ciphertext, tag: nonce.converted(tag: sealed.tag))
      var isIntact = false
      let plaintext = try SensitiveBytes(count: sealed.ciphertext.count) { (output) throws(DataProtectionError) in
        isIntact = try open(converted, nonce: EmptyNonceGCM.zeroNonce, header: [], key: key, into: output)
        guard isIntact else { return }
        sealed.ciphertext.withRawBytes { nonce.shift(decrypted: output, of: $0) }
      }
      return isIntact ? plaintext : nil
    }
  }
}

/// The result of authenticated encryption.
struct Sealed: Equatable {
  var ciphertext: [UInt8]
  /// The authentication tag, 16 bytes.
  var tag: [UInt8]
}

/// Encrypts and decrypts a complete GCM message, after its key and nonce were set.
extension CipherContext {
  borrowing func seal(_ plaintext: SensitiveBytes, header: [UInt8]) throws(DataProtectionError) -> Sealed {
    try header.withRawBytes { (bytes) throws(DataProtectionError) in try authenticate(bytes) }
    let ciphertext = try [UInt8](count: plaintext.count) { (output) throws(DataProtectionError) in
      try plaintext.withBytes { (input) throws(DataProtectionError) in try update(input, into: output) }
    }
    return Sealed(ciphertext: ciphertext, tag: try finishWithTag())
  }

  /// Decrypts into `output`.
  ///
  /// - Returns: Whether the tag matches; otherwise `output` must not be used.
  borrowing func open(
    _ sealed: Sealed, header: [UInt8], into output: UnsafeMutableRawBufferPointer
  ) throws(DataProtectionError) -> Bool {
    try header.withRawBytes { (bytes) throws(DataProtectionError) in try authenticate(bytes) }
    try sealed.ciphertext.withRawBytes { (input) throws(DataProtectionError) in try update(input, into: output) }
    return try finish(verifying: sealed.tag)
  }
}

/// Converts AES-256-GCM with an IV of 12 zero bytes to AES-256-GCM with an empty IV. Backups use an empty IV, which
/// OpenSSL rejects.
///
/// For an IV that is not 96 bits long, GCM starts its counter at a hash of the IV (NIST SP 800-38D §7.1). For the empty
/// IV, the counter starts at block 0. For the zero IV, it starts at block 1. Let E(n) be the encryption of the block with
/// the number n:
///
/// - The tags differ by E(0) xor E(1), because the part of a tag that depends on key and ciphertext is the same.
/// - The key stream of the empty IV is E(1) E(2) E(3) …. The key stream of the zero IV is E(2) E(3) …, one block ahead.
///
/// This is secure only with a new key for every item, as in Apple's code.
struct EmptyNonceGCM {
  static let zeroNonce = [UInt8](repeating: 0, count: 12)
  private static let blockSize = 16

  /// E(0) and E(1), valid only during `withKey`.
  private let blocks: UnsafeRawBufferPointer

  /// Calls `body` with the two blocks, and overwrites them afterwards.
  ///
  /// - Parameter cipher: AES-256-ECB for encryption.
  static func withKey<Result>(
    _ key: borrowing Secret, _ cipher: borrowing CipherContext,
    _ body: (EmptyNonceGCM) throws(DataProtectionError) -> Result
  ) throws(DataProtectionError) -> Result {
    try key.withBytes { (bytes) throws(DataProtectionError) in try cipher.begin(key: bytes) }
    // The counter blocks 0 and 1, which are then encrypted in place.
    var counterBlocks: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, UInt64(1).bigEndian)
    return try withUnsafeMutableBytes(of: &counterBlocks) { (memory) throws(DataProtectionError) in
      defer { wipe(memory) }
      try cipher.update(UnsafeRawBufferPointer(memory), into: memory)
      return try body(EmptyNonceGCM(blocks: UnsafeRawBufferPointer(memory)))
    }
  }

  /// Converts the tag for one IV to the tag for the other.
  func converted(tag: [UInt8]) -> [UInt8] {
    tag.indices.map { tag[$0] ^ blocks[$0] ^ blocks[Self.blockSize + $0] }
  }

  /// Converts the key stream of the zero IV in `stream` to the key stream of the empty IV.
  func shift(keyStream stream: UnsafeMutableRawBufferPointer) {
    guard let base = stream.baseAddress else { return }
    let movedByteCount = max(stream.count - Self.blockSize, 0)
    (base + (stream.count - movedByteCount)).copyMemory(from: base, byteCount: movedByteCount)
    stream.copyBytes(from: blocks[Self.blockSize...].prefix(stream.count))
  }

  /// Converts the result of decrypting `ciphertext` with the zero IV in `output` to the plaintext.
  func shift(decrypted output: UnsafeMutableRawBufferPointer, of ciphertext: UnsafeRawBufferPointer) {
    xor(output, with: ciphertext)
    shift(keyStream: output)
    xor(output, with: ciphertext)
  }
}

/// Replaces `target` with the exclusive or of both buffers, which must have the same size.
func xor(_ target: UnsafeMutableRawBufferPointer, with other: UnsafeRawBufferPointer) {
  for index in target.indices { target[index] ^= other[index] }
}
