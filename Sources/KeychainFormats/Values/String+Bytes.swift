extension String {
  /// Two lower-case digits a byte.
  package init(hexadecimal bytes: [UInt8]) {
    self = bytes.reduce(into: "") { text, byte in
      text += byte < 0x10 ? "0" + String(byte, radix: 16) : String(byte, radix: 16)
    }
  }

  /// Whether the two are the same bytes; `==` also takes composed and decomposed letters as equal.
  func hasSameBytes(as other: String) -> Bool {
    guard utf8.count == other.utf8.count else { return false }
    let compared = utf8.withContiguousStorageIfAvailable { mine in
      other.utf8.withContiguousStorageIfAvailable { theirs in mine.elementsEqual(theirs) }
    }
    return (compared ?? nil) ?? utf8.elementsEqual(other.utf8)
  }

  /// Feeds the bytes, so that texts with the same bytes hash alike.
  func hashBytes(into hasher: inout Hasher) {
    let fed: Void? = utf8.withContiguousStorageIfAvailable { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    if fed == nil { Array(utf8).withUnsafeBytes { hasher.combine(bytes: $0) } }
  }
}
