/// Writes comma-separated values (RFC 4180). Lines end with CR LF; fields with a comma, a quote or a line end are
/// quoted.
///
/// Fields that a spreadsheet would treat as a formula start with an apostrophe, which spreadsheets do not display.
package enum CSV {
  package static func line(_ fields: [String]) -> String { self.fields(fields) + "\r\n" }

  /// Returns a line without its line end.
  package static func fields(_ fields: [String]) -> String { fields.map(field).joined(separator: ",") }

  /// Returns the lines of a table without copying them. Line ends and empty lines are omitted.
  package static func lines(of table: UnsafeRawBufferPointer) -> [UnsafeRawBufferPointer] {
    var lines: [UnsafeRawBufferPointer] = []
    var start = 0
    var index = 0
    while index < table.count {
      let isEnd =
        table[index] == UInt8(ascii: "\r") && index + 1 < table.count && table[index + 1] == UInt8(ascii: "\n")
      if isEnd {
        if index > start { lines.append(UnsafeRawBufferPointer(rebasing: table[start..<index])) }
        start = index + 2
      }
      index += isEnd ? 2 : 1
    }
    if table.count > start { lines.append(UnsafeRawBufferPointer(rebasing: table[start...])) }
    return lines
  }

  /// Returns whether a spreadsheet would evaluate the text instead of displaying it. Source: OWASP, "CSV Injection".
  ///
  /// A telephone number (`+49 170 1234567`) is not treated as a formula. Many accounts have such a name, and evaluating
  /// it is harmless. With an apostrophe, a password manager would import a wrong name.
  package static func isFormula(_ text: String) -> Bool {
    guard let first = text.unicodeScalars.first else { return false }
    if first == "+", text.wholeMatch(of: /\+[0-9][0-9 ]*/) != nil { return false }
    // The last four are the full-width forms of the signs =, +, - and @.
    return ["=", "+", "-", "@", "\t", "\r", "\n", "\u{FF1D}", "\u{FF0B}", "\u{FF0D}", "\u{FF20}"].contains(first)
  }

  /// Returns whether a spreadsheet would evaluate UTF-8 text, without copying it.
  package static func isFormula(_ utf8: UnsafeRawBufferPointer) -> Bool {
    guard let first = utf8.first else { return false }
    if first == UInt8(ascii: "+") {
      let digits = utf8.dropFirst()
      let isTelephone =
        digits.first.map(isDigit) == true && digits.allSatisfy { isDigit($0) || $0 == UInt8(ascii: " ") }
      return !isTelephone
    }
    // U+FF1D, U+FF0B, U+FF0D and U+FF20: full-width forms of the signs =, +, - and @.
    let fullWidthSigns: [[UInt8]] = [
      [0xEF, 0xBC, 0x9D], [0xEF, 0xBC, 0x8B], [0xEF, 0xBC, 0x8D], [0xEF, 0xBC, 0xA0],
    ]
    return Array("=-@\t\r\n".utf8).contains(first) || fullWidthSigns.contains { utf8.starts(with: $0) }
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

  /// Returns the text with an apostrophe before it if a spreadsheet would evaluate it.
  package static func inert(_ text: String) -> String { isFormula(text) ? "'" + text : text }

  private static func field(_ text: String) -> String {
    let inertText = inert(text)
    guard inertText.unicodeScalars.contains(where: { [",", "\"", "\r", "\n"].contains($0) }) else { return inertText }
    return "\"" + inertText.replacingScalars("\"", with: "\"\"") + "\""
  }
}

extension SensitiveBuffer {
  /// Appends a quoted field without changing its bytes, except for doubled quotes.
  package mutating func appendQuoted(_ bytes: UnsafeRawBufferPointer) {
    let quote = UInt8(ascii: "\"")
    append(quote)
    for byte in bytes {
      if byte == quote { append(quote) }
      append(byte)
    }
    append(quote)
  }

  /// Appends a field, quoted if necessary.
  package mutating func appendField(_ bytes: UnsafeRawBufferPointer) {
    let needsQuotes = bytes.contains { Array(",\"\r\n".utf8).contains($0) }
    if needsQuotes { appendQuoted(bytes) } else { append(bytes) }
  }

  package mutating func appendQuoted(_ text: String) {
    var text = text
    text.withUTF8 { appendQuoted(UnsafeRawBufferPointer($0)) }
  }
}
