import KeyhaulKit
import Reports

/// Formats the results as a text table: the exit code, the result, the command's own columns, the columns that all
/// commands share, and the path. Errors and warnings follow below each row.
///
/// The column widths are fixed, because later backups are not known yet. Values whose columns do not fit are below each
/// row.
struct TableFormatter: ResultFormatter {
  let style: TextStyle
  /// The columns with the command's own values.
  let columns: [ResultTextColumn]
  /// The command to suggest for a single backup.
  let suggestedCommand: String
  /// The flags to suggest with this command.
  let suggestedFlags: [String]
  /// Returns the command's own note below the row of a backup with exit code 0; `nil` if the command has no note.
  let note: @Sendable (BatchResult) -> String?
  let hasSummary = true

  /// The widths of CODE and RESULT.
  private static let codeAndResultWidths = [4, 17]
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

  /// Returns the width of columns, each followed by two spaces.
  private static func totalWidth(_ widths: [Int]) -> Int { widths.reduce(0) { $0 + $1 + 2 } }

  /// Whether the command's own columns fit into the table. Otherwise, their values are below each row.
  private var isWide: Bool {
    let widths = Self.codeAndResultWidths + columns.map(\.width) + Self.sharedColumns.map(\.width)
    return !style.cutsText || columns.count < 2 || Self.totalWidth(widths) + Self.pathWidth <= style.width
  }

  /// The shared columns that fit into the table. The values of the other shared columns are below each row.
  private var shownSharedColumns: ArraySlice<SharedColumn> {
    guard style.cutsText else { return Self.sharedColumns[...] }
    let ownWidths = isWide ? columns.map(\.width) : []
    let start = Self.totalWidth(Self.codeAndResultWidths + ownWidths) + Self.pathTitle.count
    let count = (0...Self.sharedColumns.count).last {
      start + Self.totalWidth(Self.sharedColumns.prefix($0).map(\.width)) <= style.width
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
    let ownCells = isWide ? ownValues.map { $0 ?? "-" } : []
    let sharedCells = shownSharedColumns.map { $0.text(result) ?? "-" }
    var lines = lines(
      [String(result.code), result.outcome.rawValue] + ownCells + sharedCells, path: result.path,
      color: result.code == 0 ? nil : .red)
    lines += valueLines(of: result, ownValues: ownValues)
    lines += errorLines(of: result)
    if result.code == 0, let note = note(result) ?? result.outcome.note { lines += labeled("note: ", note) }
    for warning in result.warnings { lines += labeled("warning: ", warning.message) }
    return lines.joined(separator: "\n") + "\n"
  }

  /// Returns the values whose columns do not fit into the table, in one paragraph.
  private func valueLines(of result: BatchResult, ownValues: [String?]) -> [String] {
    var values: [String] = []
    if !isWide {
      values += zip(columns, ownValues).compactMap { column, value in value.map { column.label + $0 } }
    }
    values += Self.sharedColumns.dropFirst(shownSharedColumns.count).compactMap { column in
      column.text(result).map { column.label + $0 }
    }
    guard !values.isEmpty else { return [] }
    return WordWrap.labeled("      ", displayText(values.joined(separator: ", ")), columns: style.width)
  }

  /// Returns the lines about the error of a result, or about its reason if there is no error.
  private func errorLines(of result: BatchResult) -> [String] {
    guard let error = result.error else {
      guard let reason = result.reason else { return [] }
      let isInWarning = result.warnings.contains { reason.hasPrefix($0.message) }
      return isInWarning ? [] : labeled("why: ", reason, keepingEscapes: true)
    }
    // One line below the table explains what to do about passwords.
    guard result.id != CommandExitStatus.needsPassword.id else { return [] }
    var lines = labeled("error: ", error.message)
    if let why = error.why { lines += labeled("  why: ", why, keepingEscapes: true) }
    if let reason = result.reason, !reason.hasPrefix(error.message), reason != error.why {
      lines += labeled("cause: ", reason, keepingEscapes: true)
    }
    if let advice = error.advice { lines += labeled("  try: ", advice) }
    return lines
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
    let text = displayText(text, keepingEscapes: keepingEscapes)
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
    let widths = Self.codeAndResultWidths + ownColumns.map(\.width) + shownSharedColumns.map(\.width)
    let rightAligned = [true, false] + ownColumns.map(\.isRightAligned)
    let paddedCells = zip(cells, widths).enumerated().map { index, column in
      let (cell, width) = column
      let text = style.cut(displayText(cell), columns: width)
      let isRightAligned = index < rightAligned.count && rightAligned[index]
      return DisplayWidth.padded(text, columns: width, rightAligned: isRightAligned)
    }
    let (columnText, path) = (paddedCells.joined(separator: "  "), displayText(path))
    let line = "\(columnText)  \(path)"
    guard style.cutsText, DisplayWidth.columns(of: line) > style.width else { return [style.painted(line, color)] }
    let trimmedColumnText = columnText.lastIndex { $0 != " " }.map { String(columnText[...$0]) } ?? ""
    return [trimmedColumnText, "      \(path)"].map { style.painted($0, color) }
  }

  /// Escapes the control characters of a text, and replaces characters that the locale's encoding does not have.
  ///
  /// - Parameter keepingEscapes: Whether existing escapes stay unchanged, for a sentence whose names are already escaped.
  private func displayText(_ text: String, keepingEscapes: Bool = false) -> String {
    style.adapted(UntrustedText.escaped(text, keepingEscapes: keepingEscapes))
  }
}
