/// The loop of the passcode's derivation: a buffer is filled, encrypted in place and folded into the sum.
enum PasscodeTangle {
  static let blockSize = 32
  /// What the chip is handed at once, in bytes; the CBC chain runs on from buffer to buffer.
  private static let bufferSize = 4096
  private static let wordsPerBlock = blockSize / 4
  /// Rounds between two calls of the progress closure, a multiple of what fits into the buffer: a millisecond or two.
  static let portion: UInt32 = 12_800

  /// - Parameter progress: Told the rounds that are done; answers whether to go on.
  /// - Throws: `.cancelled` after an answer of no.
  static func run(
    _ start: borrowing Secret, rounds: UInt32, through context: borrowing CipherContext,
    progress: (_ done: Int) -> Bool
  ) throws(DataProtectionError) -> Secret {
    try start.withBytes { (block) throws(DataProtectionError) in
      try Secret(count: blockSize) { (sum) throws(DataProtectionError) in
        // The working memory is a secret too, so that it is overwritten.
        _ = try Secret(count: bufferSize) { (buffer) throws(DataProtectionError) in
          var counter: UInt32 = 1
          var remaining = rounds
          while remaining > 0 {
            let copies = min(remaining, UInt32(bufferSize / blockSize))
            fill(buffer, with: block, from: counter)
            try context.update(UnsafeRawBufferPointer(buffer), into: buffer)
            fold(buffer, Int(copies), into: sum)
            counter &+= copies
            remaining -= copies
            let done = rounds - remaining
            if remaining == 0 || done.isMultiple(of: portion) {
              guard progress(Int(done)) else { throw .stopped }
            }
          }
        }
      }
    }
  }

  private static func fill(
    _ buffer: UnsafeMutableRawBufferPointer, with block: UnsafeRawBufferPointer, from counter: UInt32
  ) {
    for offset in stride(from: 0, to: bufferSize, by: 4) {
      let copy = UInt32(truncatingIfNeeded: offset / blockSize)
      let word = block.loadUnaligned(fromByteOffset: offset % blockSize, as: UInt32.self)
      buffer.storeBytes(of: word ^ (counter &+ copy).littleEndian, toByteOffset: offset, as: UInt32.self)
    }
  }

  private static func fold(
    _ buffer: UnsafeMutableRawBufferPointer, _ copies: Int, into sum: UnsafeMutableRawBufferPointer
  ) {
    for word in 0..<copies * wordsPerBlock {
      let target = word % wordsPerBlock * 4
      let folded =
        sum.loadUnaligned(fromByteOffset: target, as: UInt32.self)
        ^ buffer.loadUnaligned(fromByteOffset: word * 4, as: UInt32.self)
      sum.storeBytes(of: folded, toByteOffset: target, as: UInt32.self)
    }
  }
}
