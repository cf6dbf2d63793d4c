/// The loop of the passcode derivation, which `HardwareUID.passcodeKey` describes. It fills a buffer with copies of a
/// block, encrypts the buffer in place, and xors the result into a sum.
///
/// Its loops are simple, so that unlocking takes only milliseconds even in unoptimized builds.
enum PasscodeTangle {
  static let blockSize = 32
  /// The bytes that are encrypted at once; the CBC chain continues from buffer to buffer.
  private static let bufferSize = 4096
  /// The size of two 32-bit words, which are processed together.
  private static let wordPairSize = 8
  /// The number of iterations between two calls of the progress closure: a multiple of the number of blocks in the
  /// buffer. They take one or two milliseconds.
  static let progressInterval: UInt32 = 12_800

  /// Runs the loop.
  ///
  /// - Parameters:
  ///   - start: The block that is copied, 32 bytes.
  ///   - iterations: The number of iterations.
  ///   - context: The cipher: AES-256-CBC with the UID.
  ///   - progress: Called with the number of iterations so far; returns whether to continue.
  /// - Throws: `.cancelled` if `progress` returns `false`.
  static func run(
    _ start: borrowing Secret, iterations: UInt32, through context: borrowing CipherContext,
    progress: (_ done: Int) -> Bool
  ) throws(DataProtectionError) -> Secret {
    try start.withBytes { (block) throws(DataProtectionError) in
      try Secret(count: blockSize) { (sum) throws(DataProtectionError) in
        // The working memory is a secret too, so that it is overwritten.
        _ = try Secret(count: bufferSize) { (buffer) throws(DataProtectionError) in
          var counter: UInt32 = 1
          var remaining = iterations
          while remaining > 0 {
            let copyCount = min(remaining, UInt32(bufferSize / blockSize))
            fill(buffer, with: block, from: counter)
            try context.update(UnsafeRawBufferPointer(buffer), into: buffer)
            fold(buffer, copyCount: Int(copyCount), into: sum)
            counter &+= copyCount
            remaining -= copyCount
            let done = iterations - remaining
            if remaining == 0 || done.isMultiple(of: progressInterval) {
              guard progress(Int(done)) else { throw .stopped }
            }
          }
        }
      }
    }
  }

  /// Fills the buffer with copies of the block. Every 32-bit word of a copy is xored with the copy's number, counted
  /// from `counter`.
  private static func fill(
    _ buffer: UnsafeMutableRawBufferPointer, with block: UnsafeRawBufferPointer, from counter: UInt32
  ) {
    var (copyOffset, counter) = (0, counter)
    while copyOffset < bufferSize {
      let mask = UInt64(counter.littleEndian) << 32 | UInt64(counter.littleEndian)
      var offset = 0
      while offset < blockSize {
        let word = block.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
        buffer.storeBytes(of: word ^ mask, toByteOffset: copyOffset + offset, as: UInt64.self)
        offset += wordPairSize
      }
      copyOffset += blockSize
      counter &+= 1
    }
  }

  /// Xors the first copies in the buffer into the sum.
  private static func fold(
    _ buffer: UnsafeMutableRawBufferPointer, copyCount: Int, into sum: UnsafeMutableRawBufferPointer
  ) {
    var target = 0
    while target < blockSize {
      var folded = sum.loadUnaligned(fromByteOffset: target, as: UInt64.self)
      var offset = target
      while offset < copyCount * blockSize {
        folded ^= buffer.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
        offset += blockSize
      }
      sum.storeBytes(of: folded, toByteOffset: target, as: UInt64.self)
      target += wordPairSize
    }
  }
}
