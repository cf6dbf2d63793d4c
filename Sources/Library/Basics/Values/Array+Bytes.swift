extension [UInt8] {
  /// Lends the bytes with a typed error, which the standard library's `withUnsafeBytes` does not carry.
  @inlinable
  package func withRawBytes<Result: ~Copyable, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try span.bytes.withUnsafeBytes(body)
  }

  /// So many bytes, which the closure fills; zeros until then.
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
