import Basics
internal import KeychainFormats

/// AES key wrap of RFC 3394 with its default initial value.
///
/// This is the RFC's loop with a reused AES context. OpenSSL has a cipher for key wrap too, but it takes seven times as
/// long, because it does not use OpenSSL's hardware-accelerated AES.
package enum KeyWrap {
  /// The number of bytes that wrapping adds.
  static let overhead = 8
  /// The initial value of RFC 3394 §2.2.3.1.
  static let initialValue: UInt64 = 0xA6A6_A6A6_A6A6_A6A6
  private static let rounds = 6

  /// Wraps a key, whose length is a multiple of 8 and at least 16, with a key of 16, 24 or 32 bytes.
  package static func wrap(
    _ key: borrowing Secret, with wrappingKey: borrowing Secret
  ) throws(DataProtectionError) -> [UInt8] {
    let context = try CipherContext(algorithm(keySize: wrappingKey.count), .encrypt)
    try wrappingKey.withBytes { (bytes) throws(DataProtectionError) in try context.begin(key: bytes) }
    return try key.withBytes { (bytes) throws(DataProtectionError) in try wrap(bytes, context) }
  }

  /// Unwraps a key, or returns `nil` if the integrity check fails because the wrapping key is wrong or the bytes were
  /// changed.
  package static func unwrap(
    _ wrapped: [UInt8], with wrappingKey: borrowing Secret
  ) throws(DataProtectionError) -> Secret? {
    try unwrap(wrapped, try unwrapCipher(with: wrappingKey))
  }

  /// Returns a cipher for unwrapping any number of keys with the same wrapping key.
  static func unwrapCipher(with wrappingKey: borrowing Secret) throws(DataProtectionError) -> CipherContext {
    let context = try CipherContext(algorithm(keySize: wrappingKey.count), .decrypt)
    try wrappingKey.withBytes { (bytes) throws(DataProtectionError) in try context.begin(key: bytes) }
    return context
  }

  static func unwrap(
    _ wrapped: [UInt8], _ context: borrowing CipherContext
  ) throws(DataProtectionError) -> Secret? {
    try wrapped.withRawBytes { (bytes) throws(DataProtectionError) in try unwrap(bytes, context) }
  }

  /// Wraps a key. `context` must be AES-ECB for encryption with the wrapping key. Source: RFC 3394 §2.2.1, indexed
  /// form.
  static func wrap(
    _ key: UnsafeRawBufferPointer, _ context: borrowing CipherContext
  ) throws(DataProtectionError) -> [UInt8] {
    guard key.count >= 16, key.count.isMultiple(of: 8) else {
      throw DataProtectionError(.unsupported, "a key of \(key.count) bytes cannot be wrapped")
    }
    // The number of 64-bit blocks of the key (n in the RFC).
    let blockCount = key.count / 8
    return try [UInt8](count: key.count + overhead) { (output) throws(DataProtectionError) in
      UnsafeMutableRawBufferPointer(rebasing: output[8...]).copyMemory(from: key)
      // In the RFC's terms, `block` is A followed by R[index], and `output` is A, R[1], R[2] and so on.
      try withBlock { (block) throws(DataProtectionError) in
        block.storeBytes(of: initialValue, as: UInt64.self)
        for round in 0..<rounds {
          for index in 1...blockCount {
            block.storeBytes(
              of: output.loadUnaligned(fromByteOffset: 8 * index, as: UInt64.self), toByteOffset: 8, as: UInt64.self)
            try context.update(UnsafeRawBufferPointer(block), into: block)
            let step = UInt64(blockCount * round + index).bigEndian
            block.storeBytes(of: block.load(as: UInt64.self) ^ step, as: UInt64.self)
            output.storeBytes(
              of: block.load(fromByteOffset: 8, as: UInt64.self), toByteOffset: 8 * index, as: UInt64.self)
          }
        }
        output.storeBytes(of: block.load(as: UInt64.self), as: UInt64.self)
      }
    }
  }

  /// Unwraps a key. `context` must be AES-ECB for decryption with the wrapping key. Source: RFC 3394 §2.2.2.
  static func unwrap(
    _ wrapped: UnsafeRawBufferPointer, _ context: borrowing CipherContext
  ) throws(DataProtectionError) -> Secret? {
    guard wrapped.count >= 24, wrapped.count.isMultiple(of: 8) else { return nil }
    let blockCount = wrapped.count / 8 - 1
    var isIntact = false
    let key = try Secret(count: blockCount * 8) { (output) throws(DataProtectionError) in
      output.copyMemory(from: UnsafeRawBufferPointer(rebasing: wrapped[8...]))
      // In the RFC's terms, `block` is A followed by R[index], and `output` is R[1], R[2] and so on.
      try withBlock { (block) throws(DataProtectionError) in
        block.storeBytes(of: wrapped.loadUnaligned(as: UInt64.self), as: UInt64.self)
        for round in (0..<rounds).reversed() {
          for index in (1...blockCount).reversed() {
            let step = UInt64(blockCount * round + index).bigEndian
            block.storeBytes(of: block.load(as: UInt64.self) ^ step, as: UInt64.self)
            block.storeBytes(
              of: output.load(fromByteOffset: 8 * index - 8, as: UInt64.self), toByteOffset: 8, as: UInt64.self)
            try context.update(UnsafeRawBufferPointer(block), into: block)
            output.storeBytes(
              of: block.load(fromByteOffset: 8, as: UInt64.self), toByteOffset: 8 * index - 8, as: UInt64.self)
          }
        }
        isIntact = block.load(as: UInt64.self) == initialValue
      }
    }
    guard isIntact else { return nil }
    return key
  }

  private static func algorithm(keySize: Int) throws(DataProtectionError) -> CipherContext.Algorithm {
    switch keySize {
    case 16: .aes128ECB
    case 24: .aes192ECB
    case 32: .aes256ECB
    default: throw DataProtectionError(.unsupported, "a wrapping key has 16, 24 or 32 bytes, not \(keySize)")
    }
  }

  /// Calls a closure with one AES block of memory, which is wiped afterwards.
  private static func withBlock(
    _ body: (UnsafeMutableRawBufferPointer) throws(DataProtectionError) -> Void
  ) throws(DataProtectionError) {
    var memory: (UInt64, UInt64) = (0, 0)
    var failure: DataProtectionError?
    withUnsafeMutableBytes(of: &memory) { block in
      do throws(DataProtectionError) { try body(block) } catch { failure = error }
      wipe(block)
    }
    if let failure { throw failure }
  }
}
