import KeyhaulKit

/// What of a backup is not as a device leaves it, and was gone around: nothing where there is none.
struct FindingSection {
  /// Each with its place in front; hostile.
  let findings: [(place: String, fact: String, isLoss: Bool, isRestorable: Bool)]

  init(_ findings: [ArchiveFinding]) {
    self.findings = findings.map { ($0.place, $0.fact, $0.isLoss, !$0.forbids(.restoring)) }
  }

  init(_ findings: [PlanDocument.Finding]) {
    self.findings = findings.map { ($0.place, $0.detail, $0.isLoss, $0.isRestorable) }
  }

  /// The most Unicode scalars of a fact.
  private static let maximumFactLength = 400

  func write(to page: inout Markup) {
    guard !findings.isEmpty else { return }
    page.newLine()
    page.element("section") { page in
      page.element("h2", "Changed since the source device wrote it")
      page.element("ul") { page in
        for finding in findings {
          page.element("li") { page in
            page.element("code", Markup.shortened(finding.place))
            page.sentence(": \(Markup.shortened(finding.fact, to: Self.maximumFactLength)). ")
            page.words(finding.isLoss ? "Part of it is lost in this copy" : "Nothing is lost")
            page.words(finding.isRestorable ? "." : ", but such a backup cannot be restored.")
          }
        }
      }
    }
  }
}
