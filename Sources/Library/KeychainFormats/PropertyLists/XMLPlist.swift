import Basics

/// XML property lists, such as the `Info.plist` of a backup, which people open in an editor.
///
/// Source: Apple's property list DTD 1.0.
package enum XMLPlist {
  /// The deepest nesting of elements.
  package static let maximumDepth = 128

  /// Returns the document with its declaration, a tab for each level, and lines that end with LF.
  ///
  /// - Throws: `.unencodable` for a null, a set, a reference, a number that is not finite, a date outside the years 0
  ///   to 9999, a key that is not text, or text with characters that XML 1.0 cannot represent; `.overLimit` for too
  ///   many levels.
  package static func encode(_ value: PropertyValue) throws(FormatError) -> [UInt8] {
    var text = """
      <?xml version="1.0" encoding="UTF-8"?>
      <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
      <plist version="1.0">

      """
    try append(value, to: &text, level: 0)
    text += "</plist>\n"
    return Array(text.utf8)
  }

  private static func append(_ value: PropertyValue, to text: inout String, level: Int) throws(FormatError) {
    guard level < maximumDepth else { throw FormatError(.xmlPlist, .overLimit, "more than \(maximumDepth) levels") }
    let indent = String(repeating: "\t", count: level)
    switch value {
    case .boolean(let value): text += "\(indent)<\(value)/>\n"
    case .integer(let value): text += "\(indent)<integer>\(value)</integer>\n"
    case .unsignedInteger(let value): text += "\(indent)<integer>\(value)</integer>\n"
    case .real(let value):
      guard value.isFinite else { throw FormatError(.xmlPlist, .unencodable, "a number that is not finite") }
      text += "\(indent)<real>\(value)</real>\n"
    case .date(let date): text += "\(indent)<date>\(try iso8601(date))</date>\n"
    case .data(let bytes): text += "\(indent)<data>\(Base64Digits.text(of: bytes))</data>\n"
    case .string(let value): text += "\(indent)<string>\(try escaped(value))</string>\n"
    case .array(let values):
      guard !values.isEmpty else {
        text += "\(indent)<array/>\n"
        return
      }
      text += "\(indent)<array>\n"
      for value in values { try append(value, to: &text, level: level + 1) }
      text += "\(indent)</array>\n"
    case .dictionary(let dictionary):
      guard !dictionary.entries.isEmpty else {
        text += "\(indent)<dict/>\n"
        return
      }
      text += "\(indent)<dict>\n"
      for entry in dictionary.entries {
        guard let key = entry.key.stringValue else {
          throw FormatError(.xmlPlist, .unencodable, "a key that is not text")
        }
        text += "\(indent)\t<key>\(try escaped(key))</key>\n"
        try append(entry.value, to: &text, level: level + 1)
      }
      text += "\(indent)</dict>\n"
    case .null: throw FormatError(.xmlPlist, .unencodable, "a null")
    case .uid: throw FormatError(.xmlPlist, .unencodable, "a reference from a keyed archive")
    case .set: throw FormatError(.xmlPlist, .unencodable, "a set")
    }
  }

  /// Returns the text escaped for an XML element, or `nil` if XML 1.0 cannot represent one of its characters.
  package static func escapedText(_ value: String) -> String? { try? escaped(value) }

  private static func escaped(_ value: String) throws(FormatError) -> String {
    var text = ""
    for scalar in value.unicodeScalars {
      switch scalar {
      case "&": text += "&amp;"
      case "<": text += "&lt;"
      case ">": text += "&gt;"
      // A reader would convert a bare carriage return to a line feed.
      case "\r": text += "&#13;"
      case "\t", "\n": text.unicodeScalars.append(scalar)
      case "\u{0}"..."\u{1F}", "\u{FFFE}", "\u{FFFF}":
        throw FormatError(.xmlPlist, .unencodable, "text with a character that XML cannot represent")
      default: text.unicodeScalars.append(scalar)
      }
    }
    return text
  }

  /// Returns a date in whole seconds, because the format has no fractions.
  private static func iso8601(_ date: KeychainDate) throws(FormatError) -> String {
    guard let compact = DERDate.encode(date.secondsSinceReferenceDate.rounded(.down)) else {
      throw FormatError(.xmlPlist, .unencodable, "a date outside the years 0 to 9999")
    }
    // The texts are `20261120180400Z` and `2026-11-20T18:04:00Z`.
    let separators: [Int: String] = [4: "-", 6: "-", 8: "T", 10: ":", 12: ":"]
    return compact.enumerated().reduce(into: "") { text, element in
      text += (separators[element.offset] ?? "") + String(decoding: [element.element], as: UTF8.self)
    }
  }
}

extension XMLPlist {
  /// The maximum number of bytes; every property list of a backup has at most a few megabytes.
  package static let maximumByteCount = 64 << 20
  /// The maximum number of elements, including the root and keys.
  package static let maximumElementCount = 1_000_000

  /// Returns whether bytes start like an XML property list: a tag, after an optional byte order mark and white space.
  package static func isXML(_ bytes: [UInt8]) -> Bool {
    let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]
    // A file that starts with more white space than this is not recognized.
    let start = bytes.prefix(64).drop { byteOrderMark.contains($0) || XMLScanner.isSpace($0) }
    return start.first == UInt8(ascii: "<")
  }

  /// Decodes a property list in UTF-8.
  ///
  /// No external resource is ever accessed. The document type is ignored, but rejected if it contains declarations.
  /// Only XML's five predefined entities and numeric character references are supported.
  /// - Throws: `.malformed` and `.truncated` with the offset, `.overLimit` for too many levels, elements or bytes.
  package static func decode(_ bytes: [UInt8]) throws(FormatError) -> PropertyValue {
    try decode(bytes, maximumElementCount: maximumElementCount)
  }

  /// Decodes a property list and preserves every entry of a key that occurs twice, like a binary list.
  package static func decodeKeepingRepeatedKeys(_ bytes: [UInt8]) throws(FormatError) -> PropertyValue {
    try decode(bytes, maximumElementCount: maximumElementCount, keepsRepeatedKeys: true)
  }

  static func decode(
    _ bytes: [UInt8], maximumElementCount: Int, keepsRepeatedKeys: Bool = false
  ) throws(FormatError) -> PropertyValue {
    guard bytes.count <= maximumByteCount else {
      throw FormatError(.xmlPlist, .overLimit, "\(bytes.count) bytes; at most \(maximumByteCount) are accepted")
    }
    return try bytes.withRawBytes { (buffer: UnsafeRawBufferPointer) throws(FormatError) -> PropertyValue in
      var reader = XMLPlistReader(
        XMLScanner(buffer), maximumElementCount: maximumElementCount, keepsRepeatedKeys: keepsRepeatedKeys)
      return try reader.document()
    }
  }
}
