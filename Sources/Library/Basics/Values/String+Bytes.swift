extension String {
  /// What UTF-8 bytes say; `nil` for others. As `init(validating:as:)`, which takes several times as long for ASCII.
  package init?(utf8 bytes: UnsafeRawBufferPointer) {
    if bytes.allSatisfy({ $0 < 0x80 }) {
      self.init(decoding: bytes, as: UTF8.self)
    } else {
      self.init(validating: bytes, as: UTF8.self)
    }
  }

  /// Two lower-case digits a byte.
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

  /// Whether the two are the same bytes; `==` also takes composed and decomposed letters as equal.
  package func hasSameBytes(as other: String) -> Bool {
    guard utf8.count == other.utf8.count else { return false }
    let compared = utf8.withContiguousStorageIfAvailable { mine in
      other.utf8.withContiguousStorageIfAvailable { theirs in mine.elementsEqual(theirs) }
    }
    return (compared ?? nil) ?? utf8.elementsEqual(other.utf8)
  }

  /// Feeds the bytes, so that texts with the same bytes hash alike.
  package func hashBytes(into hasher: inout Hasher) {
    let fed: Void? = utf8.withContiguousStorageIfAvailable { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    if fed == nil { Array(utf8).withUnsafeBytes { hasher.combine(bytes: $0) } }
  }
}
