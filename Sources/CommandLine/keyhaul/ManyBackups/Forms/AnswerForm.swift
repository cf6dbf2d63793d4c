import KeyhaulKit
import Reports

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
    "digest", "has_seal", "result", "reason", "keyhaul",
  ]

  func head() -> String { line(Self.common + columns.map(\.name)) }

  func row(_ answer: BackupAnswer, isFirst: Bool) -> String {
    let facts = answer.facts
    let common = [
      answer.path, String(answer.code), answer.id, answer.error?.message ?? "", answer.error?.why ?? "",
      answer.error?.advice ?? "", answer.warnings.map(\.message).joined(separator: "; "), facts.identifier ?? "",
      facts.deviceName ?? "", facts.date.map { Timestamp.text(of: $0) } ?? "",
      facts.isEncrypted.map { $0 ? "true" : "false" } ?? "", facts.state ?? "", facts.digest ?? "",
      facts.hasSeal.map { $0 ? "true" : "false" } ?? "", answer.result.rawValue, answer.reason ?? "",
      ProgramVersion.line,
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
  /// The columns of the command's own facts.
  let columns: [AnswerTextColumn]
  /// How one of them is looked at by itself.
  let call: String
  /// Flags that belong to it.
  let parts: [String]
  let hasSummary = true

  private static let widths = [4, 17, 13, 10, 8, 4]
  /// The least columns that a path gets beside the command's own columns.
  private static let pathWidth = 24

  /// Whether the command's own columns fit into the table; otherwise they are below each row.
  private var isWide: Bool {
    !style.cutsText || columns.count < 2
      || (Self.widths + columns.map(\.width)).reduce(0, { $0 + $1 + 2 }) + Self.pathWidth <= style.width
  }

  func head() -> String {
    let own = isWide ? columns.map(\.title) : []
    return style.painted(line(["CODE", "RESULT"] + own + ["DEVICE", "MADE", "PASSWORD", "SEAL"], "BACKUP"), .bold)
      + "\n"
  }

  func row(_ answer: BackupAnswer, isFirst: Bool) -> String {
    let facts = answer.facts
    let own = columns.map { column in answer.document.flatMap(column.text) }
    let cells =
      [String(answer.code), answer.result.rawValue] + (isWide ? own.map { $0 ?? "-" } : []) + [
        facts.deviceName ?? "-", facts.date.map { LocalTimeFormat.localDay($0) } ?? "-",
        facts.isEncrypted.map { $0 ? "yes" : "no" } ?? "-", facts.hasSeal.map { $0 ? "yes" : "no" } ?? "-",
      ]
    var lines = [style.painted(line(cells, answer.path), answer.code == 0 ? nil : .red)]
    if !isWide {
      let parts = zip(columns, own).compactMap { column, text in text.map { column.label + $0 } }
      if !parts.isEmpty {
        lines += WordWrap.labeled("      ", shown(parts.joined(separator: ", ")), columns: style.width)
      }
    }
    // One line below the table says what to do about the password.
    if let error = answer.error, answer.id != CommandStatus.needsPassword.id {
      lines.append("      error: " + shown(error.message))
      if let why = error.why { lines.append("        why: " + shown(why, keepingEscapes: true)) }
      if let reason = answer.reason, !reason.hasPrefix(error.message), reason != error.why {
        lines.append("      cause: " + shown(reason, keepingEscapes: true))
      }
    }
    if answer.error == nil, let reason = answer.reason {
      let isWarning = answer.warnings.contains { reason.hasPrefix($0.message) }
      if !isWarning { lines.append("      why: " + shown(reason, keepingEscapes: true)) }
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
    let own = isWide ? columns : []
    let widths = Self.widths.prefix(2) + own.map(\.width) + Self.widths.dropFirst(2)
    let rightAligned = [true, false] + own.map(\.isRightAligned)
    let padded = zip(cells, widths).enumerated().map { index, cell in
      let text = style.cut(shown(cell.0), columns: cell.1)
      let isRight = index < rightAligned.count && rightAligned[index]
      return DisplayWidth.padded(text, columns: cell.1, rightAligned: isRight)
    }
    return (padded + [shown(path)]).joined(separator: "  ")
  }

  private func shown(_ text: String, keepingEscapes: Bool = false) -> String {
    style.adapted(UntrustedText.escaped(text, keepingEscapes: keepingEscapes))
  }
}
