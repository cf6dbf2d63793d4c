extension String {
  /// Creates a text from UTF-8, or `nil` if the bytes are not UTF-8. Faster than `init(validating:as:)` for ASCII.
  package init?(utf8 bytes: UnsafeRawBufferPointer) {
    if bytes.allSatisfy({ $0 < 0x80 }) {
      self.init(decoding: bytes, as: UTF8.self)
    } else {
      self.init(validating: bytes, as: UTF8.self)
    }
  }

  /// Creates a text of two lower-case hexadecimal digits for each byte.
  package init(hexadecimal bytes: some Collection<UInt8>) {
    self.init(unsafeUninitializedCapacity: 2 * bytes.count) { text in
      var count = 0
      for byte in bytes {
        text[count] = Self.digit(byte >> 4)
        text[count + 1] = Self.digit(byte & 15)
        count += 2
      }
      return count
    }
  }

  private static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }

  /// Returns whether two texts have the same bytes; `==` also treats composed and decomposed letters as equal.
  package func hasSameBytes(as other: String) -> Bool {
    guard utf8.count == other.utf8.count else { return false }
    let compared = utf8.withContiguousStorageIfAvailable { left in
      other.utf8.withContiguousStorageIfAvailable { right in left.elementsEqual(right) }
    }
    return (compared ?? nil) ?? utf8.elementsEqual(other.utf8)
  }

  /// Hashes the bytes, so that texts with the same bytes have the same hash.
  package func hashBytes(into hasher: inout Hasher) {
    let combined: Void? = utf8.withContiguousStorageIfAvailable { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    if combined == nil { Array(utf8).withUnsafeBytes { hasher.combine(bytes: $0) } }
  }
}
