import KeychainFormats

/// Comma-separated values (RFC 4180): lines end with CR LF, a field with a comma, a quote or a line end is quoted.
///
/// A field that a spreadsheet would take for a formula gets an apostrophe before it, which spreadsheets do not show.
package enum CSV {
  package static func line(_ fields: [String]) -> String { fields.map(field).joined(separator: ",") + "\r\n" }

  /// Whether a spreadsheet would compute the text instead of showing it. Source: OWASP, "CSV Injection".
  ///
  /// A telephone number (`+49 170 1234567`) is a name of many accounts, and nothing comes of computing it but itself; a
  /// password manager would take the apostrophe for a part of it.
  package static func isFormula(_ text: String) -> Bool {
    guard let first = text.unicodeScalars.first else { return false }
    if first == "+", text.wholeMatch(of: /\+[0-9][0-9 ]*/) != nil { return false }
    return ["=", "+", "-", "@", "\t", "\r", "\n", "\u{FF1D}", "\u{FF0B}", "\u{FF0D}", "\u{FF20}"].contains(first)
  }

  /// The text as a spreadsheet may show it: with an apostrophe before what it would compute.
  package static func inert(_ text: String) -> String { isFormula(text) ? "'" + text : text }

  private static func field(_ text: String) -> String {
    let safe = inert(text)
    guard safe.unicodeScalars.contains(where: { [",", "\"", "\r", "\n"].contains($0) }) else { return safe }
    return "\"" + safe.replacing("\"", with: "\"\"") + "\""
  }
}

extension SensitiveBuffer {
  /// A field in quotes, its bytes as they are.
  mutating func appendQuoted(_ bytes: UnsafeRawBufferPointer) {
    let quote = UInt8(ascii: "\"")
    append(quote)
    for byte in bytes {
      if byte == quote { append(quote) }
      append(byte)
    }
    append(quote)
  }

  mutating func appendQuoted(_ text: String) {
    var text = text
    text.withUTF8 { appendQuoted(UnsafeRawBufferPointer($0)) }
  }
}
