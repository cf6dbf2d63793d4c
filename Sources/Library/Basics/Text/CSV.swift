/// Comma-separated values (RFC 4180): lines end with CR LF, a field with a comma, a quote or a line end is quoted.
///
/// A field that a spreadsheet would take for a formula gets an apostrophe before it, which spreadsheets do not show.
package enum CSV {
  package static func line(_ fields: [String]) -> String { self.fields(fields) + "\r\n" }

  /// A line without its end.
  package static func fields(_ fields: [String]) -> String { fields.map(field).joined(separator: ",") }

  /// The lines of a table, without their ends and without empty ones, where they lie.
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

  /// Whether a spreadsheet would compute the text instead of showing it. Source: OWASP, "CSV Injection".
  ///
  /// A telephone number (`+49 170 1234567`) is a name of many accounts, and nothing comes of computing it but itself; a
  /// password manager would take the apostrophe for a part of it.
  package static func isFormula(_ text: String) -> Bool {
    guard let first = text.unicodeScalars.first else { return false }
    if first == "+", text.wholeMatch(of: /\+[0-9][0-9 ]*/) != nil { return false }
    return ["=", "+", "-", "@", "\t", "\r", "\n", "\u{FF1D}", "\u{FF0B}", "\u{FF0D}", "\u{FF20}"].contains(first)
  }

  /// The same of a text in UTF-8 that is copied nowhere.
  package static func isFormula(_ utf8: UnsafeRawBufferPointer) -> Bool {
    guard let first = utf8.first else { return false }
    if first == UInt8(ascii: "+") {
      let digits = utf8.dropFirst()
      let isTelephone =
        digits.first.map(isDigit) == true && digits.allSatisfy { isDigit($0) || $0 == UInt8(ascii: " ") }
      return !isTelephone
    }
    // The full-width signs U+FF1D, U+FF0B, U+FF0D and U+FF20.
    let wide: [[UInt8]] = [[0xEF, 0xBC, 0x9D], [0xEF, 0xBC, 0x8B], [0xEF, 0xBC, 0x8D], [0xEF, 0xBC, 0xA0]]
    return Array("=-@\t\r\n".utf8).contains(first) || wide.contains { utf8.starts(with: $0) }
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

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
  package mutating func appendQuoted(_ bytes: UnsafeRawBufferPointer) {
    let quote = UInt8(ascii: "\"")
    append(quote)
    for byte in bytes {
      if byte == quote { append(quote) }
      append(byte)
    }
    append(quote)
  }

  /// A field as it is, in quotes where it needs them.
  package mutating func appendField(_ bytes: UnsafeRawBufferPointer) {
    let needsQuotes = bytes.contains { Array(",\"\r\n".utf8).contains($0) }
    if needsQuotes { appendQuoted(bytes) } else { append(bytes) }
  }

  package mutating func appendQuoted(_ text: String) {
    var text = text
    text.withUTF8 { appendQuoted(UnsafeRawBufferPointer($0)) }
  }
}
