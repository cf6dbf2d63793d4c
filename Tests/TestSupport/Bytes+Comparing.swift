public import Basics
import KeychainFormats

extension SensitiveBytes {
  /// The bytes in clear, to compare them.
  public var revealed: [UInt8] { withBytes { Array($0) } }
}

extension [UInt8] {
  /// The bytes with one bit turned over; bit 0 is the lowest of the first byte.
  public func flipping(bit: Int) -> [UInt8] {
    var copy = self
    copy[bit / 8] ^= 1 << (bit % 8)
    return copy
  }
}
