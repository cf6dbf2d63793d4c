import ArgumentParser
import Reports

/// A value of `--format`. Each command accepts some of these formats.
struct OutputFormat: KeywordArgument, Equatable {
  let rawValue: String

  static let text = OutputFormat("text")
  static let json = OutputFormat("json")
  /// JSON documents, one per line, for a command on many backups.
  static let ndjson = OutputFormat("ndjson")
  static let csv = OutputFormat("csv")
  /// A self-contained HTML page.
  static let html = OutputFormat("html")
  /// JUnit test results, for continuous integration.
  static let junit = OutputFormat("junit")

  private static let reportFormats = [text, json, ndjson, csv, html, junit]
  /// The formats of reports, followed by the formats that only exported items have.
  static let allCases =
    reportFormats + ExportFormat.all.map { OutputFormat($0.name) }.filter { !reportFormats.contains($0) }

  private init(_ name: String) { rawValue = name }

  init?(rawValue: String) {
    guard let format = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
    self = format
  }
}
