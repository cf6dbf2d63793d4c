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
  /// The command's own note below the row of an answer without a fault.
  let note: @Sendable (BackupAnswer) -> String?
  let hasSummary = true

  /// The widths of CODE and RESULT.
  private static let widths = [4, 17]
  /// A column of facts that every command's table has.
  private struct Fact: Sendable {
    let title: String
    let width: Int
    /// The text before the value if it is below the row.
    let label: String
    let text: @Sendable (BackupAnswer) -> String?
  }
  private static let facts = [
    Fact(title: "DEVICE", width: 13, label: "device: ") { $0.facts.deviceName },
    Fact(title: "MADE", width: 10, label: "made: ") { $0.facts.date.map { LocalTimeFormat.localDay($0) } },
    Fact(title: "PASSWORD", width: 8, label: "password: ") { $0.facts.isEncrypted.map { $0 ? "yes" : "no" } },
    Fact(title: "SEAL", width: 6, label: "seal: ", text: seal),
  ]
  private static let pathTitle = "BACKUP"
  /// The least columns that a path gets beside the command's own columns.
  private static let pathWidth = 24

  private static func sum(_ widths: [Int]) -> Int { widths.reduce(0) { $0 + $1 + 2 } }

  /// Whether the command's own columns fit into the table; otherwise they are below each row.
  private var isWide: Bool {
    !style.cutsText || columns.count < 2
      || Self.sum(Self.widths + columns.map(\.width) + Self.facts.map(\.width)) + Self.pathWidth <= style.width
  }

  /// The facts that fit into the table; the others are below each row.
  private var shownFacts: ArraySlice<Fact> {
    guard style.cutsText else { return Self.facts[...] }
    let start = Self.sum(Self.widths + (isWide ? columns.map(\.width) : [])) + Self.pathTitle.count
    let count = (0...Self.facts.count).last { start + Self.sum(Self.facts.prefix($0).map(\.width)) <= style.width }
    return Self.facts.prefix(count ?? 0)
  }

  func head() -> String {
    let own = isWide ? columns.map(\.title) : []
    return lines(["CODE", "RESULT"] + own + shownFacts.map(\.title), Self.pathTitle, .bold).map { $0 + "\n" }.joined()
  }

  func row(_ answer: BackupAnswer, isFirst: Bool) -> String {
    let own = columns.map { column in
      column.isShown(answer) ? answer.document.flatMap(column.text) : nil
    }
    let facts = shownFacts
    let cells =
      [String(answer.code), answer.result.rawValue] + (isWide ? own.map { $0 ?? "-" } : [])
      + facts.map { $0.text(answer) ?? "-" }
    var lines = lines(cells, answer.path, answer.code == 0 ? nil : .red)
    var parts = isWide ? [] : zip(columns, own).compactMap { column, text in text.map { column.label + $0 } }
    parts += Self.facts.dropFirst(facts.count).compactMap { fact in fact.text(answer).map { fact.label + $0 } }
    if !parts.isEmpty {
      lines += WordWrap.labeled("      ", shown(parts.joined(separator: ", ")), columns: style.width)
    }
    // One line below the table says what to do about the password.
    if let error = answer.error, answer.id != CommandStatus.needsPassword.id {
      lines += labeled("error: ", error.message)
      if let why = error.why { lines += labeled("  why: ", why, keepingEscapes: true) }
      if let reason = answer.reason, !reason.hasPrefix(error.message), reason != error.why {
        lines += labeled("cause: ", reason, keepingEscapes: true)
      }
      if let advice = error.advice { lines += labeled("  try: ", advice) }
    }
    if answer.error == nil, let reason = answer.reason {
      let isWarning = answer.warnings.contains { reason.hasPrefix($0.message) }
      if !isWarning { lines += labeled("why: ", reason, keepingEscapes: true) }
    }
    if answer.code == 0, let note = note(answer) ?? answer.result.note { lines += labeled("note: ", note) }
    for warning in answer.warnings { lines += labeled("warning: ", warning.message) }
    return lines.joined(separator: "\n") + "\n"
  }

  func foot(_ summary: AnswerSummary) -> String {
    var lines = ["", summary.sentence] + summary.remarks
    if let path = summary.firstToShow {
      let words = [call, ShellQuoting.argument(path, placeholder: "ARCHIVE")] + parts
      lines.append("One of them in full: \(words.joined(separator: " "))")
    }
    return lines.flatMap { wrapped(style.adapted($0)) }.map { $0 + "\n" }.joined()
  }

  /// A line below a row, broken between words on a terminal.
  private func labeled(_ label: String, _ text: String, keepingEscapes: Bool = false) -> [String] {
    let label = "      " + label
    let text = shown(text, keepingEscapes: keepingEscapes)
    return style.cutsText ? WordWrap.labeled(label, text, columns: style.width) : [label + text]
  }

  private func wrapped(_ line: String) -> [String] {
    style.cutsText && !line.isEmpty ? WordWrap.lines(of: line, columns: style.width) : [line]
  }

  /// Whether the backup has a seal, and whether it is broken.
  @Sendable private static func seal(_ answer: BackupAnswer) -> String? {
    let seal = answer.document?["seal"]?.stringValue.flatMap(BackupVerification.SealState.init(rawValue:))
    if answer.facts.isSealBroken || seal == .broken { return "broken" }
    return answer.facts.hasSeal.map { $0 ? "yes" : "no" }
  }

  /// The path is last and never cut, because the user may type it. If it does not fit, it has a line of its own.
  private func lines(_ cells: [String], _ path: String, _ color: Color?) -> [String] {
    let own = isWide ? columns : []
    let widths = Self.widths + own.map(\.width) + shownFacts.map(\.width)
    let rightAligned = [true, false] + own.map(\.isRightAligned)
    let padded = zip(cells, widths).enumerated().map { index, cell in
      let text = style.cut(shown(cell.0), columns: cell.1)
      let isRight = index < rightAligned.count && rightAligned[index]
      return DisplayWidth.padded(text, columns: cell.1, rightAligned: isRight)
    }
    let (facts, path) = (padded.joined(separator: "  "), shown(path))
    let line = "\(facts)  \(path)"
    guard style.cutsText, DisplayWidth.columns(of: line) > style.width else { return [style.painted(line, color)] }
    let end = facts.lastIndex { $0 != " " }.map { facts.index(after: $0) } ?? facts.startIndex
    return [String(facts[..<end]), "      \(path)"].map { style.painted($0, color) }
  }

  private func shown(_ text: String, keepingEscapes: Bool = false) -> String {
    style.adapted(UntrustedText.escaped(text, keepingEscapes: keepingEscapes))
  }
}
