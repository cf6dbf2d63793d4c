import KeyhaulKit
import Reports

/// `plan --compare` (format `migration-comparison/1`): what a backup with and one without a password bring back, to the
/// device that made it and to another.
struct ComparisonReport: Report {
  let comparison: MigrationComparison
  let report: PlanReport

  func lines(style: TextStyle, showsAll: Bool) -> [String] {
    ComparisonText(comparison, of: report.source, onto: report.target.name, showsAll: showsAll).lines(style: style)
  }

  var json: JSONValue { ComparisonDocument(comparison: comparison, move: MoveDocument(report.document)).json }
}
