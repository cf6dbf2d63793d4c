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
    in utf8: UnsafeRawBufferPointer, _ body: (Unicode.Scalar, UnsafeRawBufferPointer) -> Void
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
    _ utf8: UnsafeRawBufferPointer, _ body: (Unicode.Scalar?, UnsafeRawBufferPointer) -> Void
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
