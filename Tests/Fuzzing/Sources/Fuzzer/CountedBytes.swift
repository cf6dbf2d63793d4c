import Basics
import KeychainCrypto

/// A source of the same bytes in every run.
struct CountedBytes: RandomSource {
  func fill(_ buffer: UnsafeMutableRawBufferPointer) {
    for index in buffer.indices { buffer[index] = UInt8(truncatingIfNeeded: index &* 37 &+ 11) }
  }
}
