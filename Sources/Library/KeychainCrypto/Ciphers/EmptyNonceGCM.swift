import Basics

/// Converts the output of AES-256-GCM with the all-zero nonce of 12 bytes to the output with an empty nonce (IV). Backups
/// use an empty nonce, which OpenSSL rejects.
///
/// For a nonce that is not 96 bits long, GCM starts its counter at a hash of the nonce (NIST SP 800-38D §7.1). For the
/// empty nonce, the counter starts at block 0. For the all-zero nonce, it starts at block 1. Let E(n) be the encryption of
/// the block with the number n:
///
/// - The tags differ by E(0) xor E(1), because the part of a tag that depends on key and ciphertext is the same.
/// - The key stream of the empty nonce is E(1) E(2) E(3) …. The key stream of the all-zero nonce is E(2) E(3) …, one block
///   ahead.
///
/// This is secure only with a new key for every item, as in Apple's code.
struct EmptyNonceGCM {
  static let allZeroNonce = [UInt8](repeating: 0, count: 12)
  private static let blockSize = 16

  /// E(0) and E(1), valid only during `withBlocks`.
  private let blocks: UnsafeRawBufferPointer

  /// Calls `body` with the two blocks, and overwrites them afterwards.
  ///
  /// - Parameter cipher: AES-256-ECB for encryption.
  static func withBlocks<Result>(
    of key: borrowing Secret, _ cipher: borrowing CipherContext,
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

  /// Converts the tag for one nonce to the tag for the other.
  func converted(tag: [UInt8]) -> [UInt8] {
    tag.indices.map { tag[$0] ^ blocks[$0] ^ blocks[Self.blockSize + $0] }
  }

  /// Converts `stream`, the key stream of the all-zero nonce, to the key stream of the empty nonce.
  func convert(keyStream stream: UnsafeMutableRawBufferPointer) {
    guard let base = stream.baseAddress else { return }
    let movedByteCount = max(stream.count - Self.blockSize, 0)
    (base + (stream.count - movedByteCount)).copyMemory(from: base, byteCount: movedByteCount)
    stream.copyBytes(from: blocks[Self.blockSize...].prefix(stream.count))
  }

  /// Converts `output`, the result of decrypting `ciphertext` with the all-zero nonce, to the plaintext.
  func convert(decrypted output: UnsafeMutableRawBufferPointer, ciphertext: UnsafeRawBufferPointer) {
    xor(output, with: ciphertext)
    convert(keyStream: output)
    xor(output, with: ciphertext)
  }
}

/// Replaces `target` with the exclusive or of both buffers, which must have the same size.
func xor(_ target: UnsafeMutableRawBufferPointer, with other: UnsafeRawBufferPointer) {
  for index in target.indices { target[index] ^= other[index] }
}
