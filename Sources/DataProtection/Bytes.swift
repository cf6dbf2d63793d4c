/// An array of `count` bytes that `body` fills.
func makeBytes<Failure: Error>(
  _ count: Int, _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
) throws(Failure) -> [UInt8] {
  try [UInt8](unsafeUninitializedCapacity: count) { (buffer, initializedCount) throws(Failure) in
    buffer.initialize(repeating: 0)
    initializedCount = count
    try body(UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: count))
  }
}

extension Array where Element == UInt8 {
  /// `withUnsafeBytes` with a typed error and any result.
  func withRawBytes<Result: ~Copyable, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try span.bytes.withUnsafeBytes(body)
  }
}

/// Most significant byte first.
func bigEndianBytes(_ value: some FixedWidthInteger & UnsignedInteger) -> [UInt8] {
  withUnsafeBytes(of: value.bigEndian) { Array($0) }
}

/// Reads an unsigned integer, most significant byte first. The collection is as long as the integer at most.
func bigEndianInteger(_ bytes: some Collection<UInt8>) -> UInt64 {
  bytes.reduce(0) { $0 << 8 | UInt64($1) }
}
