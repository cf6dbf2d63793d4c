import KeyhaulKit
import Reports

/// `plan --audit` (format `keychain-audit/1`): what a developer asks of the items that apps store.
struct AuditReport: Report {
  let audit: KeychainAudit
  let report: PlanReport

  func lines(style: TextStyle, showsAll: Bool) -> [String] {
    AuditText(audit, of: report.source).lines(style: style, showsAll: showsAll)
  }

  var json: JSONValue { AuditDocument(audit: audit, move: MoveDocument(report.document)).json }
}
