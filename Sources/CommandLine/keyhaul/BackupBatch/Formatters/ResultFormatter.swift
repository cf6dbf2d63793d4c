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
  /// The folder of backups that was the only argument; `nil` if the argument is something else, there are several
  /// arguments, or the paths are in a list.
  let folder: String?
  let hasSummary = true

  func head() -> String {
    let firstMembers: JSONValue = [
      "format": "backup-list/1", "verb": .string(verb), "folder": .text(folder),
    ]
    let withoutClosingBrace = firstMembers.text().dropLast("\n}".count)
    return String(withoutClosingBrace) + ",\n  \"backups\": ["
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
  let isOnTerminal: Bool
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
      metadata.hasSeal.map { $0 ? "true" : "false" } ?? "", result.outcome.rawValue, result.reason ?? "",
      ProgramVersion.line,
    ]
    return line(sharedFields + columns.map { $0.text(in: result.document) })
  }

  func foot(_ summary: BatchSummary) -> String { "" }

  private func line(_ fields: [String]) -> String {
    isOnTerminal ? UntrustedText.escaped(CSV.fields(fields)) + "\n" : CSV.line(fields)
  }
}
