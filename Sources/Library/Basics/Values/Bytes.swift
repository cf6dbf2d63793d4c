extension [UInt8] {
  /// Calls a closure with the bytes and passes on its typed error, unlike the standard library's `withUnsafeBytes`.
  @inlinable
  package func withRawBytes<Result: ~Copyable, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try span.bytes.withUnsafeBytes(body)
  }

  /// Creates an array of `count` zeroed bytes and lets the closure fill them.
  @inlinable
  package init<Failure: Error>(
    count: Int, filledBy body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    try self.init(unsafeUninitializedCapacity: count) { (buffer, initializedCount) throws(Failure) in
      buffer.initialize(repeating: 0)
      initializedCount = count
      try body(UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: count))
    }
  }
}

/// Returns the bytes of an unsigned integer, the most significant first.
package func bigEndianBytes(_ value: some FixedWidthInteger & UnsignedInteger) -> [UInt8] {
  withUnsafeBytes(of: value.bigEndian) { Array($0) }
}

/// Returns the unsigned integer with these bytes, the most significant first.
///
/// - Parameter bytes: At most 8 bytes; of a longer collection, only the last 8 count.
@inlinable
package func bigEndianInteger(_ bytes: some Collection<UInt8>) -> UInt64 {
  var number: UInt64 = 0
  for byte in bytes { number = number << 8 | UInt64(byte) }
  return number
}
