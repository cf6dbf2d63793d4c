import KeyhaulKit

extension CommandFailure {
  /// The widest that an error's text gets, however wide the terminal is.
  static let widestText = 100

  /// The lines for a person: `error:`, `why:`, `try:`, each wrapped with its text aligned, none cut.
  ///
  /// - Parameter showsCode: Whether the exit code is added, as it is under `-v`.
  func lines(style: TextStyle, showsCode: Bool) -> [String] {
    let columns = max(40, min(style.width, Self.widestText))
    var lines: [String] = []
    func add(_ label: String, _ text: String, _ color: Color?, keepingEscapes: Bool = false) {
      let shown = UntrustedText.escaped(text, keepingEscapes: keepingEscapes)
      let wrapped = WordWrap.lines(of: style.adapted(shown), columns: columns - label.count)
      for (index, line) in wrapped.enumerated() {
        let head = index == 0 ? label : String(repeating: " ", count: label.count)
        lines.append((index == 0 ? style.painted(head, color) : head) + line)
      }
    }
    add("error: ", showsCode ? "\(message) (exit code \(status.code), \(status.id))" : message, .red)
    // The library's reasons have the names in them escaped already.
    if let why { add("  why: ", why, .faint, keepingEscapes: true) }
    if let advice { add("  try: ", advice, .faint) }
    return lines
  }

  /// The last line on standard error under `--json`.
  var json: JSONValue {
    var fields: [(String, JSONValue)] = [
      ("message_type", "exit_error"), ("code", .integer(Int64(status.code))), ("id", .string(status.id)),
      ("message", .string(message)),
    ]
    if let done { fields.append(("done", .string(done))) }
    if let why { fields.append(("why", .string(why))) }
    if let advice { fields.append(("try", .string(advice))) }
    return .object(fields)
  }
}
