/// Decodes UTF-8 in place, for text that must not be copied to a `String`.
package enum UTF8Scalars {
  /// U+FEFF, which Windows programs write at the start of a text to mark it as UTF-8.
  ///
  /// Source: The Unicode Standard, section 23.8; RFC 8259, section 8.1, lets a JSON parser ignore it.
  package static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

  /// Returns the number of bytes of a byte order mark at the start of a text: 3, or 0 if there is none.
  package static func byteOrderMarkCount(of text: some Sequence<UInt8>) -> Int {
    text.starts(with: byteOrderMark) ? byteOrderMark.count : 0
  }

  /// Calls `body` with each scalar and its bytes. Invalid bytes are reported as a replacement character.
  package static func forEach(
    in utf8: UnsafeRawBufferPointer, _ body: (_ scalar: Unicode.Scalar, _ bytes: UnsafeRawBufferPointer) -> Void
  ) {
    _ = walk(utf8) { scalar, bytes in
      if let scalar { return body(scalar, bytes) }
      var replacement = "\u{FFFD}"
      replacement.withUTF8 { body("\u{FFFD}", UnsafeRawBufferPointer($0)) }
    }
  }

  /// Returns whether the bytes are UTF-8, with the same result as `String(validating:as:)`.
  package static func isValid(_ utf8: UnsafeRawBufferPointer) -> Bool {
    utf8.allSatisfy { $0 < 0x80 } || walk(utf8) { _, _ in }
  }

  /// Calls `body` with each scalar, or with `nil` if the bytes are invalid.
  ///
  /// - Returns: Whether all bytes are UTF-8.
  private static func walk(
    _ utf8: UnsafeRawBufferPointer, _ body: (_ scalar: Unicode.Scalar?, _ bytes: UnsafeRawBufferPointer) -> Void
  ) -> Bool {
    var parser = Unicode.UTF8.ForwardParser()
    var bytes = utf8.makeIterator()
    var offset = 0
    var isValid = true
    while true {
      switch parser.parseScalar(from: &bytes) {
      case .emptyInput: return isValid
      case .valid(let encoded):
        body(Unicode.UTF8.decode(encoded), UnsafeRawBufferPointer(rebasing: utf8[offset..<offset + encoded.count]))
        offset += encoded.count
      case .error(let length):
        isValid = false
        body(nil, UnsafeRawBufferPointer(rebasing: utf8[offset..<offset + length]))
        offset += length
      }
    }
  }
}

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
@inlinable
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

extension String {
  /// Creates a string from UTF-8, or `nil` if the bytes are not UTF-8. Faster than `init(validating:as:)` for ASCII.
  package init?(utf8 bytes: UnsafeRawBufferPointer) {
    if bytes.allSatisfy({ $0 < 0x80 }) {
      self.init(decoding: bytes, as: UTF8.self)
    } else {
      self.init(validating: bytes, as: UTF8.self)
    }
  }

  /// Creates a string of two lower-case hexadecimal digits for each byte.
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

  /// Returns whether two strings have the same bytes; `==` also treats composed and decomposed letters as equal.
  package func hasSameBytes(as other: String) -> Bool {
    guard utf8.count == other.utf8.count else { return false }
    let compared = utf8.withContiguousStorageIfAvailable { left in
      other.utf8.withContiguousStorageIfAvailable { right in left.elementsEqual(right) }
    }
    // Doubly optional, because either string may lack contiguous storage.
    return (compared ?? nil) ?? utf8.elementsEqual(other.utf8)
  }

  /// Returns the text with every occurrence of some scalars replaced.
  ///
  /// `replacing` compares characters. It would not find a quotation mark before a combining mark such as U+0301 or after
  /// a letter such as U+0D4E, because both form one `Character` with the quotation mark.
  package func replacingScalars(_ scalars: String, with replacement: String) -> String {
    String(unicodeScalars.replacing(scalars.unicodeScalars, with: replacement.unicodeScalars))
  }

  /// Hashes the bytes, so that strings with the same bytes have the same hash.
  package func hashBytes(into hasher: inout Hasher) {
    let combined: Void? = utf8.withContiguousStorageIfAvailable { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    if combined == nil { Array(utf8).withUnsafeBytes { hasher.combine(bytes: $0) } }
  }
}
