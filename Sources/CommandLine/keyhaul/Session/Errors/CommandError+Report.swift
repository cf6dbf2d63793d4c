import KeyhaulKit

extension CommandError {
  /// The maximum number of columns of an error, even on a wider terminal.
  static let maximumWidth = 100

  /// Returns the error as lines of text: `error:`, `why:` and `try:`, each wrapped and aligned, never cut.
  ///
  /// - Parameter showsCode: Whether to add the exit code, as with `-v`.
  func lines(style: TextStyle, showsCode: Bool) -> [String] {
    let columns = max(40, min(style.width, Self.maximumWidth))
    var lines: [String] = []
    func add(_ label: String, _ text: String, _ color: Color?, keepingEscapes: Bool = false) {
      let escapedText = UntrustedText.escaped(text, keepingEscapes: keepingEscapes)
      let wrapped = WordWrap.lines(of: style.adapted(escapedText), columns: columns - label.count)
      for (index, line) in wrapped.enumerated() {
        let head = index == 0 ? label : String(repeating: " ", count: label.count)
        lines.append((index == 0 ? style.painted(head, color) : head) + line)
      }
    }
    add("error: ", showsCode ? "\(message) (exit code \(status.code), \(status.id))" : message, .red)
    // The library has already escaped the names in its reasons.
    if let why { add("  why: ", why, .faint, keepingEscapes: true) }
    if let advice { add("  try: ", advice, .faint) }
    return lines
  }

  /// The error as JSON, for the last line of standard error with `--json`.
  var json: JSONValue {
    var fields: [(String, JSONValue)] = [
      ("message_type", "exit_error"), ("code", .integer(Int64(status.code))), ("id", .string(status.id)),
      ("message", .string(message)),
    ]
    if let completedChange { fields.append(("done", .string(completedChange))) }
    if let why { fields.append(("why", .string(why))) }
    if let advice { fields.append(("try", .string(advice))) }
    return .object(fields)
  }
}
