import Basics
internal import KeychainFormats

/// The ciphers that opening and sealing items takes, kept because naming a cipher costs more than using it on an item.
///
/// Not to be used from two threads at once: `ClassKeys` holds it under a lock.
struct SealingWorkspace: ~Copyable {
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

  // MARK: The device's form: AES-256-GCM with a fixed nonce and the blob's header as authenticated data

  borrowing func sealWithNonce(
    _ nonce: [UInt8], header: [UInt8], _ plaintext: SensitiveBytes, key: borrowing Secret
  ) throws(DataProtectionError) -> Sealed {
    try key.withBytes { (bytes) throws(DataProtectionError) in try gcmEncryption.begin(key: bytes, iv: nonce) }
    return try gcmEncryption.seal(plaintext, header: header)
  }

  /// `nil` where the tag does not match.
  borrowing func openWithNonce(
    _ nonce: [UInt8], header: [UInt8], _ sealed: Sealed, key: borrowing Secret
  ) throws(DataProtectionError) -> SensitiveBytes? {
    var isIntact = false
    let plaintext = try SensitiveBytes(count: sealed.ciphertext.count) { (output) throws(DataProtectionError) in
      isIntact = try open(sealed, nonce: nonce, header: header, key: key, into: output)
    }
    return isIntact ? plaintext : nil
  }

  /// - Returns: Whether the tag matches; `output` is not to be used otherwise.
  private borrowing func open(
    _ sealed: Sealed, nonce: [UInt8], header: [UInt8], key: borrowing Secret, into output: UnsafeMutableRawBufferPointer
  ) throws(DataProtectionError) -> Bool {
    try key.withBytes { (bytes) throws(DataProtectionError) in try gcmDecryption.begin(key: bytes, iv: nonce) }
    return try gcmDecryption.open(sealed, header: header, into: output)
  }

  // MARK: The backup's form: AES-256-GCM with an IV of length zero

  borrowing func sealWithEmptyNonce(
    _ plaintext: SensitiveBytes, key: borrowing Secret
  ) throws(DataProtectionError) -> Sealed {
    try EmptyNonce.withKey(key, blockEncryption) { (nonce) throws(DataProtectionError) in
      // Of zeros the cipher makes its key stream.
      try key.withBytes { (bytes) throws(DataProtectionError) in
        try gcmEncryption.begin(key: bytes, iv: EmptyNonce.zeroNonce)
      }
      let laterStream = try SensitiveBytes(count: plaintext.count) { (stream) throws(DataProtectionError) in
        try gcmEncryption.update(UnsafeRawBufferPointer(stream), into: stream)
      }
      let ciphertext = [UInt8](count: plaintext.count) { output in
        laterStream.withBytes { output.copyMemory(from: $0) }
        nonce.shift(keyStream: output)
        plaintext.withBytes { xor(output, with: $0) }
      }
      // What the zero IV encrypts to this ciphertext. It is not the plaintext, but with the ciphertext it reveals key
      // stream.
      let shifted = SensitiveBytes(count: plaintext.count) { output in
        laterStream.withBytes { output.copyMemory(from: $0) }
        ciphertext.withRawBytes { xor(output, with: $0) }
      }
      let sealed = try sealWithNonce(EmptyNonce.zeroNonce, header: [], shifted, key: key)
      return Sealed(ciphertext: ciphertext, tag: nonce.converted(tag: sealed.tag))
    }
  }

  /// `nil` where the tag does not match; what was decrypted is overwritten then.
  borrowing func openWithEmptyNonce(
    _ sealed: Sealed, key: borrowing Secret
  ) throws(DataProtectionError) -> SensitiveBytes? {
    try EmptyNonce.withKey(key, blockEncryption) { (nonce) throws(DataProtectionError) in
      let converted = Sealed(ciphertext: sealed.ciphertext, tag: nonce.converted(tag: sealed.tag))
      var isIntact = false
      let plaintext = try SensitiveBytes(count: sealed.ciphertext.count) { (output) throws(DataProtectionError) in
        isIntact = try open(converted, nonce: EmptyNonce.zeroNonce, header: [], key: key, into: output)
        guard isIntact else { return }
        sealed.ciphertext.withRawBytes { nonce.shift(decrypted: output, of: $0) }
      }
      return isIntact ? plaintext : nil
    }
  }
}

/// What authenticated encryption gives.
struct Sealed: Equatable {
  var ciphertext: [UInt8]
  /// 16 bytes.
  var tag: [UInt8]
}

/// A whole message of GCM, after its key and nonce were set.
extension CipherContext {
  borrowing func seal(_ plaintext: SensitiveBytes, header: [UInt8]) throws(DataProtectionError) -> Sealed {
    try header.withRawBytes { (bytes) throws(DataProtectionError) in try authenticate(bytes) }
    let ciphertext = try [UInt8](count: plaintext.count) { (output) throws(DataProtectionError) in
      try plaintext.withBytes { (input) throws(DataProtectionError) in try update(input, into: output) }
    }
    return Sealed(ciphertext: ciphertext, tag: try finishWithTag())
  }

  /// - Returns: Whether the tag matches; `output` is not to be used otherwise.
  borrowing func open(
    _ sealed: Sealed, header: [UInt8], into output: UnsafeMutableRawBufferPointer
  ) throws(DataProtectionError) -> Bool {
    try header.withRawBytes { (bytes) throws(DataProtectionError) in try authenticate(bytes) }
    try sealed.ciphertext.withRawBytes { (input) throws(DataProtectionError) in try update(input, into: output) }
    return try finish(verifying: sealed.tag)
  }
}
