package import KeyhaulKit

/// The report of `plan --audit` (format `keychain-audit/1`): a developer's view of the items that apps store.
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
