/// Comma-separated values (RFC 4180): lines end with CR LF, a field with a comma, a quote or a line end is quoted.
///
/// A field that a spreadsheet would take for a formula gets an apostrophe before it, which spreadsheets do not show.
enum CSV {
  static func line(_ fields: [String]) -> String { fields.map(field).joined(separator: ",") + "\r\n" }

  /// Whether a spreadsheet would compute the text instead of showing it. Source: OWASP, "CSV Injection".
  static func isFormula(_ text: String) -> Bool {
    guard let first = text.unicodeScalars.first else { return false }
    return ["=", "+", "-", "@", "\t", "\r", "\n", "\u{FF1D}", "\u{FF0B}", "\u{FF0D}", "\u{FF20}"].contains(first)
  }

  private static func field(_ text: String) -> String {
    let safe = isFormula(text) ? "'" + text : text
    guard safe.unicodeScalars.contains(where: { [",", "\"", "\r", "\n"].contains($0) }) else { return safe }
    return "\"" + safe.replacing("\"", with: "\"\"") + "\""
  }
}
