import Basics
import KeychainFormats

/// The ciphers for decrypting and encrypting items. They are reused, because OpenSSL takes longer to look up a cipher than
/// to encrypt an item.
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

  // MARK: Backup items: AES-256-GCM with an empty nonce

  borrowing func sealWithEmptyNonce(
    _ plaintext: SensitiveBytes, key: borrowing Secret
  ) throws(DataProtectionError) -> Sealed {
    try EmptyNonceGCM.withBlocks(of: key, blockEncryption) { (converter) throws(DataProtectionError) in
      // OpenSSL rejects an empty nonce. So this gets the key stream of the all-zero nonce, by encrypting zeros, and converts
      // it to the key stream of the empty nonce. The bytes of a new `SensitiveBytes` are zeros.
      try key.withBytes { (bytes) throws(DataProtectionError) in
        try gcmEncryption.begin(key: bytes, iv: EmptyNonceGCM.allZeroNonce)
      }
      let allZeroNonceStream = try SensitiveBytes(count: plaintext.count) { (stream) throws(DataProtectionError) in
        try gcmEncryption.update(UnsafeRawBufferPointer(stream), into: stream)
      }
      let ciphertext = [UInt8](count: plaintext.count) { output in
        allZeroNonceStream.withBytes { output.copyMemory(from: $0) }
        converter.convert(keyStream: output)
        plaintext.withBytes { xor(output, with: $0) }
      }
      // To compute the tag, GCM has to produce the same ciphertext with the all-zero nonce. These are the bytes that
      // encrypt to it. They are secret, because together with the ciphertext they reveal the key stream.
      let substitutePlaintext = SensitiveBytes(count: plaintext.count) { output in
        allZeroNonceStream.withBytes { output.copyMemory(from: $0) }
        ciphertext.withRawBytes { xor(output, with: $0) }
      }
      let sealed = try sealWithNonce(EmptyNonceGCM.allZeroNonce, header: [], substitutePlaintext, key: key)
      return Sealed(ciphertext: ciphertext, tag: converter.converted(tag: sealed.tag))
    }
  }

  /// Returns the plaintext. If the tag does not match, returns `nil` and overwrites the decrypted bytes.
  borrowing func openWithEmptyNonce(
    _ sealed: Sealed, key: borrowing Secret
  ) throws(DataProtectionError) -> SensitiveBytes? {
    try EmptyNonceGCM.withBlocks(of: key, blockEncryption) { (converter) throws(DataProtectionError) in
      let allZeroNonceSealed = Sealed(ciphertext: sealed.ciphertext, tag: converter.converted(tag: sealed.tag))
      var isIntact = false
      let plaintext = try SensitiveBytes(count: sealed.ciphertext.count) { (output) throws(DataProtectionError) in
        isIntact = try open(
          allZeroNonceSealed, nonce: EmptyNonceGCM.allZeroNonce, header: [], key: key, into: output)
        guard isIntact else { return }
        sealed.ciphertext.withRawBytes { converter.convert(decrypted: output, ciphertext: $0) }
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
