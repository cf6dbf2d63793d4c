/// Returns an unsigned integer's bytes, the most significant first; as many as the type has.
package func bigEndianBytes(_ value: some FixedWidthInteger & UnsignedInteger) -> [UInt8] {
  withUnsafeBytes(of: value.bigEndian) { Array($0) }
}

/// Returns the unsigned integer whose bytes these are, the most significant first.
///
/// - Parameter bytes: At most 8; of a longer collection the last 8 count.
@inlinable
package func bigEndianInteger(_ bytes: some Collection<UInt8>) -> UInt64 {
  var number: UInt64 = 0
  for byte in bytes { number = number << 8 | UInt64(byte) }
  return number
}
