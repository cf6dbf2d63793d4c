import Basics
internal import KeychainFormats

/// What turns AES-256-GCM with the IV of twelve zero bytes, which OpenSSL has, into that with the empty IV, which backups
/// have and OpenSSL refuses.
///
/// For an IV that is not 96 bits long GCM starts its counter at a hash of the IV; for the empty one that is the block 0
/// (NIST SP 800-38D §7.1). With the zero IV it starts at block 1. Where E(n) is the encryption of the block that holds
/// the number n:
///
/// - the tags differ by E(0) xor E(1), for the part of a tag that depends on key and ciphertext is the same;
/// - the key stream of the empty IV is E(1) E(2) E(3) …, that of the zero IV E(2) E(3) …: the same, a block later.
///
/// Only ever sound with a fresh key for every item, as Apple does it.
struct EmptyNonce {
  static let zeroNonce = [UInt8](repeating: 0, count: 12)
  private static let blockSize = 16

  /// E(0) and E(1); lent.
  private let blocks: UnsafeRawBufferPointer

  /// Lends the two blocks for the length of `body` and overwrites them.
  ///
  /// - Parameter cipher: AES-256-ECB for encryption.
  static func withKey<Result>(
    _ key: borrowing Secret, _ cipher: borrowing CipherContext,
    _ body: (EmptyNonce) throws(DataProtectionError) -> Result
  ) throws(DataProtectionError) -> Result {
    try key.withBytes { (bytes) throws(DataProtectionError) in try cipher.begin(key: bytes) }
    var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, UInt64(1).bigEndian)
    return try withUnsafeMutableBytes(of: &words) { (memory) throws(DataProtectionError) in
      defer { wipe(memory) }
      try cipher.update(UnsafeRawBufferPointer(memory), into: memory)
      return try body(EmptyNonce(blocks: UnsafeRawBufferPointer(memory)))
    }
  }

  /// From a tag of one IV to that of the other.
  func converted(tag: [UInt8]) -> [UInt8] {
    tag.indices.map { tag[$0] ^ blocks[$0] ^ blocks[Self.blockSize + $0] }
  }

  /// The key stream of the empty IV, from as much of the zero IV's in `stream`.
  func shift(keyStream stream: UnsafeMutableRawBufferPointer) {
    guard let base = stream.baseAddress else { return }
    let kept = max(stream.count - Self.blockSize, 0)
    (base + (stream.count - kept)).copyMemory(from: base, byteCount: kept)
    stream.copyBytes(from: blocks[Self.blockSize...].prefix(stream.count))
  }

  /// The plaintext, from what the zero IV made of `ciphertext` in `output`.
  func shift(decrypted output: UnsafeMutableRawBufferPointer, of ciphertext: UnsafeRawBufferPointer) {
    xor(output, with: ciphertext)
    shift(keyStream: output)
    xor(output, with: ciphertext)
  }
}

/// `target` becomes the exclusive or of both, which are of one length.
func xor(_ target: UnsafeMutableRawBufferPointer, with other: UnsafeRawBufferPointer) {
  for index in target.indices { target[index] ^= other[index] }
}
