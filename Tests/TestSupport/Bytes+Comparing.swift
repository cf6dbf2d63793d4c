package import Basics
import KeychainFormats

extension SensitiveBytes {
  /// A copy of the secret bytes, for comparison.
  package var revealed: [UInt8] { withBytes { Array($0) } }
}

extension [UInt8] {
  /// Returns the bytes with one flipped bit; bit 0 is the lowest of the first byte.
  package func flipping(bit: Int) -> [UInt8] {
    var copy = self
    copy[bit / 8] ^= 1 << (bit % 8)
    return copy
  }
}
