import CommandSession
import KeychainFormats

/// A page of `explain`: what becomes of an item, a reason that reports give, or an exit code.
struct Explanation: Sendable {
  let id: String
  /// The exit code, where it is one.
  var code: Int32?
  /// What it comes to, in a few words.
  let title: String
  let rule: String
  let effect: String
  let advice: String
  /// Where the rule comes from, in public sources.
  var source: String?

  static let all = outcomes + reasons + exitCodes

  func lines(style: TextStyle) -> [String] {
    let heading = code.map { "\(id) (exit code \($0))" } ?? id
    var lines = WordWrap.lines(of: style.adapted("\(heading) — \(title)"), columns: style.width)
    if let first = lines.first { lines[0] = style.painted(first, .bold) }
    let parts = [("Rule", rule), ("Effect", effect), ("Do", advice)] + (source.map { [("Source", $0)] } ?? [])
    for (label, text) in parts {
      lines += WordWrap.labelled(
        "  " + DisplayWidth.padded(label, columns: 8) + " ", style.adapted(text), columns: style.width)
    }
    return lines
  }

  /// What the machine-readable form says of it.
  var fields: [(String, JSONValue)] {
    var fields: [(String, JSONValue)] = [("id", .string(id))]
    if let code { fields.append(("code", .integer(Int64(code)))) }
    fields += [
      ("title", .string(title)), ("rule", .string(rule)), ("effect", .string(effect)), ("do", .string(advice)),
    ]
    if let source { fields.append(("source", .string(source))) }
    return fields
  }
}
