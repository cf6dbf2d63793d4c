extension [UInt8] {
  /// Creates the lower bytes of a number in big-endian order.
  package init(bigEndian value: Int, count: Int) {
    self = Array([UInt8](littleEndian: value, count: count).reversed())
  }

  /// Creates the lower bytes of a number in little-endian order.
  package init(littleEndian value: Int, count: Int) {
    self = []
    reserveCapacity(count)
    for index in 0..<count { append(UInt8(truncatingIfNeeded: value >> (8 * index))) }
  }
}
