internal import KeychainFormats

/// The ciphers that opening and sealing items takes, kept because naming a cipher costs more than using it on an item.
///
/// Not to be used from two threads at once: `ClassKeys` holds it under a lock.
struct SealingWorkspace: ~Copyable {
  private let blockEncryption: CipherContext
  private let counterMode: CipherContext
  private let gcmEncryption: CipherContext
  private let gcmDecryption: CipherContext

  private static let blockSize = 16
  private static let zeroNonce = [UInt8](repeating: 0, count: 12)

  init() throws(DataProtectionError) {
    let blockEncryption = try CipherContext(.aes256ECB, .encrypt)
    let counterMode = try CipherContext(.aes256CTR, .encrypt)
    let gcmEncryption = try CipherContext(.aes256GCM, .encrypt)
    let gcmDecryption = try CipherContext(.aes256GCM, .decrypt)
    self.blockEncryption = blockEncryption
    self.counterMode = counterMode
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
    try header.withRawBytes { (bytes) throws(DataProtectionError) in try gcmEncryption.authenticate(bytes) }
    let ciphertext = try makeBytes(plaintext.count) { (output) throws(DataProtectionError) in
      try plaintext.withBytes { (input) throws(DataProtectionError) in try gcmEncryption.update(input, into: output) }
    }
    return Sealed(ciphertext: ciphertext, tag: try gcmEncryption.finishWithTag())
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
    try header.withRawBytes { (bytes) throws(DataProtectionError) in try gcmDecryption.authenticate(bytes) }
    try sealed.ciphertext.withRawBytes { (input) throws(DataProtectionError) in
      try gcmDecryption.update(input, into: output)
    }
    return try gcmDecryption.finish(verifying: sealed.tag)
  }

  // MARK: The backup's form: AES-256-GCM with an IV of length zero
  //
  // For an IV that is not 96 bits long GCM starts its counter at a hash of the IV; for the empty one that is the block 0
  // (NIST SP 800-38D §7.1). OpenSSL refuses an empty IV. With the 96-bit zero IV it starts at block 1, and the part of
  // the tag that depends on key and ciphertext is the same; so the two tags differ by E(0) xor E(1), and the data's
  // counters by one. Only ever sound with a fresh key for every item, as Apple does it.

  borrowing func sealWithEmptyNonce(
    _ plaintext: SensitiveBytes, key: borrowing Secret
  ) throws(DataProtectionError) -> Sealed {
    let mask = try beginCounting(key)
    let ciphertext = try makeBytes(plaintext.count) { (output) throws(DataProtectionError) in
      try plaintext.withBytes { (input) throws(DataProtectionError) in try count(from: 1, input, into: output) }
    }
    // What OpenSSL has to encrypt, from counter 2 on, to arrive at this ciphertext. It is not the plaintext, but with
    // the ciphertext it reveals key stream.
    let shifted = try SensitiveBytes(count: ciphertext.count) { (output) throws(DataProtectionError) in
      try ciphertext.withRawBytes { (input) throws(DataProtectionError) in try count(from: 2, input, into: output) }
    }
    let sealed = try sealWithNonce(Self.zeroNonce, header: [], shifted, key: key)
    return Sealed(ciphertext: ciphertext, tag: mask.applied(to: sealed.tag))
  }

  /// `nil` where the tag does not match; nothing is decrypted then.
  borrowing func openWithEmptyNonce(
    _ sealed: Sealed, key: borrowing Secret
  ) throws(DataProtectionError) -> SensitiveBytes? {
    let mask = try beginCounting(key)
    let shifted = Sealed(ciphertext: sealed.ciphertext, tag: mask.applied(to: sealed.tag))
    var isIntact = false
    let plaintext = try SensitiveBytes(count: sealed.ciphertext.count) { (output) throws(DataProtectionError) in
      isIntact = try open(shifted, nonce: Self.zeroNonce, header: [], key: key, into: output)
      guard isIntact else { return }
      try sealed.ciphertext.withRawBytes { (input) throws(DataProtectionError) in
        try count(from: 1, input, into: output)
      }
    }
    return isIntact ? plaintext : nil
  }

  /// What the tag of the zero IV differs by from that of the empty one.
  private struct TagMask {
    let words: (UInt64, UInt64)

    func applied(to tag: [UInt8]) -> [UInt8] {
      withUnsafeBytes(of: words) { mask in zip(tag, mask).map { $0 ^ $1 } }
    }
  }

  /// Sets the key of the counter mode.
  ///
  /// - Returns: E(0) xor E(1), E(n) being the encryption of the block that holds the number n: what counter mode makes of
  ///   zeros from counter 0 on.
  private borrowing func beginCounting(_ key: borrowing Secret) throws(DataProtectionError) -> TagMask {
    try key.withBytes { (bytes) throws(DataProtectionError) in try counterMode.begin(key: bytes, iv: Self.blocks[0]) }
    var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
    var failure: DataProtectionError?
    withUnsafeMutableBytes(of: &words) { stream in
      do throws(DataProtectionError) {
        try counterMode.update(UnsafeRawBufferPointer(stream), into: stream)
      } catch {
        failure = error
      }
    }
    let mask = TagMask(words: (words.0 ^ words.2, words.1 ^ words.3))
    withUnsafeMutableBytes(of: &words) { wipe($0) }
    if let failure { throw failure }
    return mask
  }

  /// Counter mode with the first counter block `start`, under the key that is set.
  private borrowing func count(
    from start: Int, _ input: UnsafeRawBufferPointer, into output: UnsafeMutableRawBufferPointer
  ) throws(DataProtectionError) {
    try counterMode.restart(iv: Self.blocks[start])
    try counterMode.update(input, into: output)
  }

  /// The counter blocks 0, 1 and 2.
  private static let blocks = (0...2).map { [UInt8](repeating: 0, count: blockSize - 1) + [UInt8($0)] }
}

/// What authenticated encryption gives.
struct Sealed: Equatable {
  var ciphertext: [UInt8]
  /// 16 bytes.
  var tag: [UInt8]
}
