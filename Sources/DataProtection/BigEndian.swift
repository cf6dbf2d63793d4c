/// Most significant byte first.
func bigEndianBytes(_ value: some FixedWidthInteger & UnsignedInteger) -> [UInt8] {
  withUnsafeBytes(of: value.bigEndian) { Array($0) }
}

/// Reads an unsigned integer, most significant byte first. The collection is as long as the integer at most.
func bigEndianInteger(_ bytes: some Collection<UInt8>) -> UInt64 {
  bytes.reduce(0) { $0 << 8 | UInt64($1) }
}
