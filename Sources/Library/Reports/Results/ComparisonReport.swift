package import KeyhaulKit

/// `plan --compare` (format `migration-comparison/1`): what a backup with and one without a password bring back, to the
/// device that made it and to another.
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
  /// The four restores and the checklist as one HTML file.
  ///
  /// - Parameters:
  ///   - sourceArgument: What the person types for the source; `nil` if it came from a stream.
  ///   - targetArgument: The same for the target; `nil` if there is none.
  ///   - program: The name and version that the page states.
  package func page(from sourceArgument: String?, to targetArgument: String?, program: String) -> ComparisonPage {
    ComparisonPage(
      comparison, of: report.document, apps: report.source.apps, maker: report.source.maker,
      sourceArgument: sourceArgument,
      targetArgument: targetArgument, program: program)
  }
}

/// `plan --audit` (format `keychain-audit/1`): what a developer asks of the items that apps store.
package struct AuditReport: Report {
  package let audit: KeychainAudit
  package let report: PlanReport

  package init(audit: KeychainAudit, report: PlanReport) {
    self.audit = audit
    self.report = report
  }

  package func lines(style: TextStyle, showsAll: Bool) -> [String] {
    AuditText(audit, of: report.source).lines(style: style, showsAll: showsAll)
  }

  package var json: JSONValue { AuditDocument(audit: audit, move: MoveDocument(report.document)).json }
}
