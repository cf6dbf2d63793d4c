import KeyhaulKit
import Reports

/// Formats the results for many backups piece by piece, so that they need not be kept in memory.
protocol ResultFormatter {
  /// Returns the text before the first result.
  func head() -> String
  /// Returns the text for one result.
  func row(_ result: BatchResult, isFirst: Bool) -> String
  /// Returns the text after the last result.
  func foot(_ summary: BatchSummary) -> String
  /// Whether the foot contains the summary. Otherwise, the summary is printed separately.
  var hasSummary: Bool { get }
}

/// Formats each result as one line of JSON (`backup-answer/1`).
struct NDJSONFormatter: ResultFormatter {
  let hasSummary = false

  func head() -> String { "" }
  func row(_ result: BatchResult, isFirst: Bool) -> String { result.json.compactText() + "\n" }
  func foot(_ summary: BatchSummary) -> String { "" }
}

/// Formats the results as one JSON document (`backup-list/1`).
struct JSONListFormatter: ResultFormatter {
  let verb: String
  /// The folder that was named; `nil` if there were other or more arguments.
  let folder: String?
  let hasSummary = true

  func head() -> String {
    let head: JSONValue = [
      "format": "backup-list/1", "verb": .string(verb), "folder": .text(folder),
    ]
    return String(head.text().dropLast("\n}".count)) + ",\n  \"backups\": ["
  }

  func row(_ result: BatchResult, isFirst: Bool) -> String {
    (isFirst ? "\n    " : ",\n    ") + JSONValue.object(result.members).text(indentedBy: 4)
  }

  func foot(_ summary: BatchSummary) -> String {
    "\n  ],\n  \"summary\": \(summary.json.text(indentedBy: 2))\n}\n"
  }
}

/// Formats the results as a JSON array of rows with the chosen fields.
struct FieldsFormatter: ResultFormatter {
  let chosenFields: ChosenFields
  let hasSummary = false

  func head() -> String { "[" }

  func row(_ result: BatchResult, isFirst: Bool) -> String {
    (isFirst ? "\n  " : ",\n  ") + chosenFields.row(.object(result.members)).text(indentedBy: 2)
  }

  func foot(_ summary: BatchSummary) -> String { "\n]\n" }
}

/// Formats the results as CSV. Names are not cut.
struct CSVFormatter: ResultFormatter {
  let columns: [ResultColumn]
  /// Whether the table goes to a terminal, where control characters must be escaped.
  let isShown: Bool
  let hasSummary = false

  /// The columns of all commands.
  private static let sharedColumns = [
    "path", "code", "id", "error", "why", "try", "warnings", "udid", "device_name", "made", "encrypted", "state",
    "digest", "has_seal", "result", "reason", "keyhaul",
  ]

  func head() -> String { line(Self.sharedColumns + columns.map(\.name)) }

  func row(_ result: BatchResult, isFirst: Bool) -> String {
    let metadata = result.metadata
    let sharedFields = [
      result.path, String(result.code), result.id, result.error?.message ?? "", result.error?.why ?? "",
      result.error?.advice ?? "", result.warnings.map(\.message).joined(separator: "; "), metadata.identifier ?? "",
      metadata.deviceName ?? "", metadata.date.map { Timestamp.text(of: $0) } ?? "",
      metadata.isEncrypted.map { $0 ? "true" : "false" } ?? "", metadata.state ?? "", metadata.digest ?? "",
      metadata.hasSeal.map { $0 ? "true" : "false" } ?? "", result.word.rawValue, result.reason ?? "",
      ProgramVersion.line,
    ]
    return line(sharedFields + columns.map { $0.text(in: result.document) })
  }

  func foot(_ summary: BatchSummary) -> String { "" }

  private func line(_ fields: [String]) -> String {
    isShown ? UntrustedText.escaped(CSV.fields(fields)) + "\n" : CSV.line(fields)
  }
}

/// Formats the results as a text table. The column widths are fixed, because later backups are not known yet. Errors
/// and warnings follow below each row.
struct TableFormatter: ResultFormatter {
  let style: TextStyle
  /// The columns with the command's own values.
  let columns: [ResultTextColumn]
  /// The command to suggest for a single backup.
  let suggestedCommand: String
  /// The flags to suggest with it.
  let suggestedFlags: [String]
  /// Returns the command's own note below the row of a backup with exit code 0; `nil` if there is none.
  let note: @Sendable (BatchResult) -> String?
  let hasSummary = true

  /// The widths of CODE and RESULT.
  private static let widths = [4, 17]
  /// A column that the tables of all commands have.
  private struct SharedColumn: Sendable {
    let title: String
    let width: Int
    /// The text before the value if it is below the row.
    let label: String
    let text: @Sendable (BatchResult) -> String?
  }
  private static let sharedColumns = [
    SharedColumn(title: "DEVICE", width: 13, label: "device: ") { $0.metadata.deviceName },
    SharedColumn(title: "MADE", width: 10, label: "made: ") { $0.metadata.date.map { LocalTimeFormat.localDay($0) } },
    SharedColumn(title: "PASSWORD", width: 8, label: "password: ") {
      $0.metadata.isEncrypted.map { $0 ? "yes" : "no" }
    },
    SharedColumn(title: "SEAL", width: 6, label: "seal: ", text: seal),
  ]
  private static let pathTitle = "BACKUP"
  /// The minimum width of a path next to the command's own columns.
  private static let pathWidth = 24

  private static func sum(_ widths: [Int]) -> Int { widths.reduce(0) { $0 + $1 + 2 } }

  /// Whether the command's own columns fit into the table. Otherwise, they are below each row.
  private var isWide: Bool {
    !style.cutsText || columns.count < 2
      || Self.sum(Self.widths + columns.map(\.width) + Self.sharedColumns.map(\.width)) + Self.pathWidth <= style.width
  }

  /// The shared columns that fit into the table. The others are below each row.
  private var shownSharedColumns: ArraySlice<SharedColumn> {
    guard style.cutsText else { return Self.sharedColumns[...] }
    let start = Self.sum(Self.widths + (isWide ? columns.map(\.width) : [])) + Self.pathTitle.count
    let count = (0...Self.sharedColumns.count).last {
      start + Self.sum(Self.sharedColumns.prefix($0).map(\.width)) <= style.width
    }
    return Self.sharedColumns.prefix(count ?? 0)
  }

  func head() -> String {
    let titles = ["CODE", "RESULT"] + (isWide ? columns.map(\.title) : []) + shownSharedColumns.map(\.title)
    return lines(titles, path: Self.pathTitle, color: .bold).map { $0 + "\n" }.joined()
  }

  func row(_ result: BatchResult, isFirst: Bool) -> String {
    let ownValues = columns.map { column in
      column.isShown(result) ? result.document.flatMap(column.text) : nil
    }
    let shared = shownSharedColumns
    let cells =
      [String(result.code), result.word.rawValue] + (isWide ? ownValues.map { $0 ?? "-" } : [])
      + shared.map { $0.text(result) ?? "-" }
    var lines = lines(cells, path: result.path, color: result.code == 0 ? nil : .red)
    var valuesBelow =
      isWide ? [] : zip(columns, ownValues).compactMap { column, text in text.map { column.label + $0 } }
    valuesBelow += Self.sharedColumns.dropFirst(shared.count).compactMap { column in
      column.text(result).map { column.label + $0 }
    }
    if !valuesBelow.isEmpty {
      lines += WordWrap.labeled("      ", shown(valuesBelow.joined(separator: ", ")), columns: style.width)
    }
    // One line below the table explains what to do about passwords.
    if let error = result.error, result.id != CommandExitStatus.needsPassword.id {
      lines += labeled("error: ", error.message)
      if let why = error.why { lines += labeled("  why: ", why, keepingEscapes: true) }
      if let reason = result.reason, !reason.hasPrefix(error.message), reason != error.why {
        lines += labeled("cause: ", reason, keepingEscapes: true)
      }
      if let advice = error.advice { lines += labeled("  try: ", advice) }
    }
    if result.error == nil, let reason = result.reason {
      let isWarning = result.warnings.contains { reason.hasPrefix($0.message) }
      if !isWarning { lines += labeled("why: ", reason, keepingEscapes: true) }
    }
    if result.code == 0, let note = note(result) ?? result.word.note { lines += labeled("note: ", note) }
    for warning in result.warnings { lines += labeled("warning: ", warning.message) }
    return lines.joined(separator: "\n") + "\n"
  }

  func foot(_ summary: BatchSummary) -> String {
    var lines = (["", summary.sentence] + summary.remarks).flatMap { wrapped(style.adapted($0)) }
    if let path = summary.firstToShow {
      let arguments = [suggestedCommand, ShellQuoting.argument(path, placeholder: "ARCHIVE")] + suggestedFlags
      lines += commandLines("One of them in full:", style.adapted(arguments.joined(separator: " ")))
    }
    return lines.map { $0 + "\n" }.joined()
  }

  /// Formats a command with a label. The command is never broken, because the user may copy it.
  private func commandLines(_ label: String, _ command: String) -> [String] {
    let line = "\(label) \(command)"
    return style.cutsText && DisplayWidth.columns(of: line) > style.width ? [label, "  \(command)"] : [line]
  }

  /// Formats a text below a row, wrapped between words on a terminal.
  private func labeled(_ label: String, _ text: String, keepingEscapes: Bool = false) -> [String] {
    let label = "      " + label
    let text = shown(text, keepingEscapes: keepingEscapes)
    return style.cutsText ? WordWrap.labeled(label, text, columns: style.width) : [label + text]
  }

  private func wrapped(_ line: String) -> [String] {
    style.cutsText && !line.isEmpty ? WordWrap.lines(of: line, columns: style.width) : [line]
  }

  /// Returns "yes", "no" or "broken"; `nil` if it is unknown whether the backup has a seal.
  @Sendable private static func seal(_ result: BatchResult) -> String? {
    let seal = result.document?["seal"]?.stringValue.flatMap(BackupVerification.SealState.init(rawValue:))
    if result.metadata.isSealBroken || seal == .broken { return "broken" }
    return result.metadata.hasSeal.map { $0 ? "yes" : "no" }
  }

  /// Formats a row. The path is last and never cut, because the user may copy it. If it does not fit, it has its own line.
  private func lines(_ cells: [String], path: String, color: Color?) -> [String] {
    let ownColumns = isWide ? columns : []
    let widths = Self.widths + ownColumns.map(\.width) + shownSharedColumns.map(\.width)
    let rightAligned = [true, false] + ownColumns.map(\.isRightAligned)
    let padded = zip(cells, widths).enumerated().map { index, column in
      let (cell, width) = column
      let text = style.cut(shown(cell), columns: width)
      let isRight = index < rightAligned.count && rightAligned[index]
      return DisplayWidth.padded(text, columns: width, rightAligned: isRight)
    }
    let (leading, path) = (padded.joined(separator: "  "), shown(path))
    let line = "\(leading)  \(path)"
    guard style.cutsText, DisplayWidth.columns(of: line) > style.width else { return [style.painted(line, color)] }
    let end = leading.lastIndex { $0 != " " }.map { leading.index(after: $0) } ?? leading.startIndex
    return [String(leading[..<end]), "      \(path)"].map { style.painted($0, color) }
  }

  private func shown(_ text: String, keepingEscapes: Bool = false) -> String {
    style.adapted(UntrustedText.escaped(text, keepingEscapes: keepingEscapes))
  }
}
