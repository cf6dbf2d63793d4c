package import KeyhaulKit

/// The report of `plan --expect` (format `plan-expectation-result/1`): a line for each unmet expectation, and the
/// counts.
package struct ExpectationReport: Report {
  package let check: ExpectationCheck
  private let report: PlanReport
  private let messages: ExpectationMessages

  package init(_ check: ExpectationCheck, _ report: PlanReport) {
    self.check = check
    self.report = report
    messages = ExpectationMessages(check, source: report.document.source)
  }

  package func lines(style: TextStyle, showsAll: Bool) -> [String] {
    var lines = check.cases.flatMap { checkedCase in
      checkedCase.unmet.map { messages.line(of: $0, in: checkedCase.scenario) }
    }
    if showsAll { lines += check.cases.filter(\.isMet).map(messages.line(ofMet:)) }
    return lines.map { style.adapted(UntrustedText.escaped($0)) } + report.source.blindSpotLines(style: style)
      + [messages.verdict]
  }

  private var move: MoveDocument { MoveDocument(report.document) }

  package var json: JSONValue { ExpectationDocument(check, move: move).json }
  /// The result as JUnit XML, in UTF-8.
  package var junit: [UInt8] { Array(ExpectationTestReport(check, move: move).xml.utf8) }
}
