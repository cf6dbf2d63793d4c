extension [UInt8] {
  /// The lower bytes of a number, the highest first.
  package init(bigEndian value: Int, count: Int) {
    self = Array([UInt8](littleEndian: value, count: count).reversed())
  }

  /// The lower bytes of a number, the lowest first.
  package init(littleEndian value: Int, count: Int) {
    self = []
    reserveCapacity(count)
    for index in 0..<count { append(UInt8(truncatingIfNeeded: value >> (8 * index))) }
  }
}
