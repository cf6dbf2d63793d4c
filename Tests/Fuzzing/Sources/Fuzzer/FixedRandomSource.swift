import Basics
import KeychainCrypto

/// A random source that returns the same bytes in every run.
struct FixedRandomSource: RandomSource {
  func fill(_ buffer: UnsafeMutableRawBufferPointer) {
    for index in buffer.indices { buffer[index] = UInt8(truncatingIfNeeded: index &* 37 &+ 11) }
  }
}
