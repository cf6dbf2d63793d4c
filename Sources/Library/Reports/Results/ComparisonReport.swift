package import KeyhaulKit

/// The report of `plan --compare` (format `migration-comparison/1`). It compares restores of a backup with and without
/// a password, to the source device and to another device.
package struct ComparisonReport: Report {
  package let comparison: MigrationComparison
  package let report: PlanReport

  package init(comparison: MigrationComparison, report: PlanReport) {
    self.comparison = comparison
    self.report = report
  }

  package func lines(style: TextStyle, showsAll: Bool) -> [String] {
    ComparisonText(comparison, of: report.source, onto: report.target.name, showsAll: showsAll).lines(style: style)
  }

  package var json: JSONValue { ComparisonDocument(comparison: comparison, move: MoveDocument(report.document)).json }
}

extension ComparisonReport {
  /// Returns the four restores and the checklist as one HTML file.
  ///
  /// - Parameters:
  ///   - sourceArgument: The source as a command-line argument; `nil` if it came from a stream.
  ///   - targetArgument: The target as a command-line argument; `nil` if there is no such argument.
  ///   - program: The program's name and version, for the page.
  package func page(from sourceArgument: String?, to targetArgument: String?, program: String) -> ComparisonPage {
    var page = ComparisonPage(
      comparison, of: report.document, apps: report.source.apps, sourceDeviceItems: report.source.sourceDeviceItems,
      sourceArgument: sourceArgument,
      targetArgument: targetArgument, program: program)
    page.condition = report.source.condition
    return page
  }
}
