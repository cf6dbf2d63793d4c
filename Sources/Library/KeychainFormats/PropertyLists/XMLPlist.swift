import Basics

/// Writes property lists as XML: `Info.plist` of a backup, which people open in an editor.
///
/// Source: Apple's property list DTD 1.0.
public enum XMLPlist {
  /// The most levels of elements inside each other.
  public static let maximumDepth = 128

  /// The document with its declaration, a tab for each level, lines ending in LF.
  ///
  /// - Throws: `.unencodable` for a null, a set, a reference, a number that is not finite, a date outside the years 0
  ///   to 9999, a key that is not text, and text with characters that XML 1.0 has no form for; `.overLimit`.
  public static func encode(_ value: PropertyValue) throws(FormatError) -> [UInt8] {
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
    case .uid: throw FormatError(.xmlPlist, .unencodable, "a reference of a keyed archive")
    case .set: throw FormatError(.xmlPlist, .unencodable, "a set")
    }
  }

  /// The text as it stands in an element; `nil` where XML 1.0 has no form for a character of it.
  package static func escapedText(_ value: String) -> String? { try? escaped(value) }

  private static func escaped(_ value: String) throws(FormatError) -> String {
    var text = ""
    for scalar in value.unicodeScalars {
      switch scalar {
      case "&": text += "&amp;"
      case "<": text += "&lt;"
      case ">": text += "&gt;"
      // A reader turns a bare carriage return into a line feed.
      case "\r": text += "&#13;"
      case "\t", "\n": text.unicodeScalars.append(scalar)
      case "\u{0}"..."\u{1F}", "\u{FFFE}", "\u{FFFF}":
        throw FormatError(.xmlPlist, .unencodable, "text with a character that XML has no form for")
      default: text.unicodeScalars.append(scalar)
      }
    }
    return text
  }

  /// Whole seconds; the format has no fractions.
  private static func iso8601(_ date: KeychainDate) throws(FormatError) -> String {
    guard let compact = DERDate.encode(date.secondsSinceReferenceDate.rounded(.down)) else {
      throw FormatError(.xmlPlist, .unencodable, "a date outside the years 0 to 9999")
    }
    let separators: [Int: String] = [4: "-", 6: "-", 8: "T", 10: ":", 12: ":"]
    return compact.enumerated().reduce(into: "") { text, element in
      text += (separators[element.offset] ?? "") + String(decoding: [element.element], as: UTF8.self)
    }
  }
}
