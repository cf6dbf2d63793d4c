import KeyhaulKit

/// How many answers are printed: what stands before the first, each of them, and what stands behind the last. Each piece is
/// made by itself, so that nothing has to be held.
protocol AnswerForm {
  func head() -> String
  func row(_ answer: BackupAnswer, isFirst: Bool) -> String
  func foot(_ summary: AnswerSummary) -> String
  /// Whether the foot says what they came to; otherwise that is said beside it.
  var hasSummary: Bool { get }
}

/// `backup-answer/1` on each line.
struct AnswerLinesForm: AnswerForm {
  let hasSummary = false

  func head() -> String { "" }
  func row(_ answer: BackupAnswer, isFirst: Bool) -> String { answer.json.compactText() + "\n" }
  func foot(_ summary: AnswerSummary) -> String { "" }
}

/// `backup-list/1`: one document.
struct AnswerListForm: AnswerForm {
  let verb: String
  /// The folder that was named; `nil` if anything else was, or more.
  let folder: String?
  let hasSummary = true

  func head() -> String {
    let head: JSONValue = [
      "format": "backup-list/1", "verb": .string(verb), "folder": .text(folder),
    ]
    return String(head.text().dropLast("\n}".count)) + ",\n  \"backups\": ["
  }

  func row(_ answer: BackupAnswer, isFirst: Bool) -> String {
    (isFirst ? "\n    " : ",\n    ") + JSONValue.object(answer.members).text(indentedBy: 4)
  }

  func foot(_ summary: AnswerSummary) -> String {
    "\n  ],\n  \"summary\": \(summary.json.text(indentedBy: 2))\n}\n"
  }
}

/// An array of rows, each with the fields that were chosen.
struct AnswerFieldsForm: AnswerForm {
  let chosen: ChosenFields
  let hasSummary = false

  func head() -> String { "[" }

  func row(_ answer: BackupAnswer, isFirst: Bool) -> String {
    (isFirst ? "\n  " : ",\n  ") + chosen.row(.object(answer.members)).text(indentedBy: 2)
  }

  func foot(_ summary: AnswerSummary) -> String { "\n]\n" }
}

/// A table for spreadsheets and other programs. Names are whole, as in JSON.
struct AnswerTableForm: AnswerForm {
  let columns: [AnswerColumn]
  /// On a terminal, what would act on it is shown as text.
  let isShown: Bool
  let hasSummary = false

  private static let common = [
    "path", "code", "id", "error", "why", "try", "warnings", "udid", "device_name", "made", "encrypted", "state",
    "digest", "has_seal",
  ]

  func head() -> String { line(Self.common + columns.map(\.name)) }

  func row(_ answer: BackupAnswer, isFirst: Bool) -> String {
    let facts = answer.facts
    let common = [
      answer.path, String(answer.code), answer.id, answer.error?.message ?? "", answer.error?.why ?? "",
      answer.error?.advice ?? "", answer.warnings.map(\.message).joined(separator: "; "), facts.identifier ?? "",
      facts.deviceName ?? "", facts.date.map { Timestamp.text(of: $0) } ?? "",
      facts.isEncrypted.map { $0 ? "true" : "false" } ?? "", facts.state ?? "", facts.digest ?? "",
      facts.hasSeal.map { $0 ? "true" : "false" } ?? "",
    ]
    return line(common + columns.map { $0.text(in: answer.document) })
  }

  func foot(_ summary: AnswerSummary) -> String { "" }

  private func line(_ fields: [String]) -> String {
    isShown ? UntrustedText.escaped(CSV.fields(fields)) + "\n" : CSV.line(fields)
  }
}

/// A table for people, whose columns are as wide as they always are: the backups that follow are not known yet. Below a row
/// stands what went wrong.
struct AnswerTextForm: AnswerForm {
  let style: TextStyle
  /// In a few words, what the verb's document says.
  let finding: (BackupAnswer) -> String
  /// The reason why a result is only partly good; `nil` if its warnings say it.
  let reason: (BackupAnswer) -> String?
  /// How one of them is looked at by itself.
  let call: String
  /// Flags that belong to it.
  let parts: [String]
  let hasSummary = true

  private static let widths = [4, 17, 13, 10, 8, 4]

  func head() -> String {
    style.painted(line(["CODE", "RESULT", "DEVICE", "MADE", "PASSWORD", "SEAL"], "BACKUP"), .bold) + "\n"
  }

  func row(_ answer: BackupAnswer, isFirst: Bool) -> String {
    let facts = answer.facts
    let cells = [
      String(answer.code), finding(answer), facts.deviceName ?? "-",
      facts.date.map { LocalTimeFormat.localDay($0) } ?? "-",
      facts.isEncrypted.map { $0 ? "yes" : "no" } ?? "-", facts.hasSeal.map { $0 ? "yes" : "no" } ?? "-",
    ]
    var lines = [style.painted(line(cells, answer.path), answer.code == 0 ? nil : .red)]
    // One line below the table says what to do about the password.
    if let error = answer.error, answer.id != CommandStatus.needsPassword.id {
      lines.append("      error: " + shown(error.message))
      if let why = error.why { lines.append("        why: " + shown(why, keepingEscapes: true)) }
    }
    if answer.error == nil, answer.code == CommandStatus.partial.code, let reason = reason(answer) {
      lines.append("      why: " + shown(reason, keepingEscapes: true))
    }
    lines += answer.warnings.map { "      warning: " + shown($0.message) }
    return lines.joined(separator: "\n") + "\n"
  }

  func foot(_ summary: AnswerSummary) -> String {
    var lines = ["", summary.sentence] + summary.remarks
    if let path = summary.firstWithoutFault {
      let words = [call, ShellQuoting.argument(path, placeholder: "ARCHIVE")] + parts
      lines.append("One of them in full: \(words.joined(separator: " "))")
    }
    return lines.map { style.adapted($0) + "\n" }.joined()
  }

  /// The path is last and never cut, because the user may type it.
  private func line(_ cells: [String], _ path: String) -> String {
    let padded = zip(cells, Self.widths).enumerated().map { index, cell in
      let text = style.cut(shown(cell.0), columns: cell.1)
      return DisplayWidth.padded(text, columns: cell.1, rightAligned: index == 0)
    }
    return (padded + [shown(path)]).joined(separator: "  ")
  }

  private func shown(_ text: String, keepingEscapes: Bool = false) -> String {
    style.adapted(UntrustedText.escaped(text, keepingEscapes: keepingEscapes))
  }
}
