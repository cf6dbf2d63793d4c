import Basics
import KeychainCrypto

/// The same bytes in every run.
struct CountedBytes: RandomSource {
  func fill(_ buffer: UnsafeMutableRawBufferPointer) {
    for index in buffer.indices { buffer[index] = UInt8(truncatingIfNeeded: index &* 37 &+ 11) }
  }
}
