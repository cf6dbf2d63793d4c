import KeyhaulKit

/// The section about findings that did not prevent the report; nothing if there are none.
struct FindingSection {
  /// The findings, each with its location. Untrusted.
  let findings: [(location: String, fact: String, isLoss: Bool, isRestorable: Bool)]

  init(_ findings: [BackupFinding]) {
    self.findings = findings.map {
      (location: $0.file, fact: $0.fact, isLoss: $0.isLoss, isRestorable: !$0.blocks(.restoring))
    }
  }

  init(_ findings: [PlanDocument.Finding]) {
    self.findings = findings.map {
      (location: $0.file, fact: $0.detail, isLoss: $0.isLoss, isRestorable: $0.isRestorable)
    }
  }

  /// The maximum number of Unicode scalars of a fact.
  private static let maximumFactLength = 400

  func write(to page: inout HTMLWriter) {
    guard !findings.isEmpty else { return }
    page.newLine()
    page.element("section") { page in
      page.element("h2", "Changed since the source device wrote it")
      page.element("ul") { page in
        for finding in findings {
          page.element("li") { page in
            page.element("code", HTMLWriter.shortened(finding.location))
            page.escapedText(": \(HTMLWriter.shortened(finding.fact, to: Self.maximumFactLength)). ")
            page.text(finding.isLoss ? "Part of it is lost in this copy" : "Nothing is lost")
            page.text(finding.isRestorable ? "." : "; such a backup cannot be restored.")
          }
        }
      }
    }
  }
}
