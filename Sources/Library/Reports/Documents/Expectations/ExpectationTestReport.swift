package import KeyhaulKit

/// The result of checking expectations as JUnit XML, for continuous integration. Each restore is a test suite, and each
/// expectation that applies to the restore is a test. Unchecked expectations are skipped tests.
///
/// Names of backups, devices and items are escaped twice: invisible characters, including all that XML does not allow,
/// become `\u{1B}`, and XML markup becomes entities. The report contains no time, so equal results have equal bytes.
package struct ExpectationTestReport {
  private let check: ExpectationCheck
  private let messages: ExpectationMessages
  private let move: MoveDocument

  package init(_ check: ExpectationCheck, move: MoveDocument) {
    self.check = check
    messages = ExpectationMessages(check, source: move.source)
    self.move = move
  }

  /// The document, in UTF-8.
  package var xml: String {
    // `HTMLWriter` writes elements, attributes and escaped text, which are the same in XML.
    var page = HTMLWriter()
    let failureCount = check.cases.count { !$0.isMet }
    let skippedCount = check.unchecked.count
    page.element(
      "testsuites",
      [
        "name": "expectations", "tests": String(check.cases.count + skippedCount), "failures": String(failureCount),
        "errors": "0", "skipped": String(skippedCount),
      ]
    ) { page in
      page.newLine()
      for scenario in check.scenarios { writeSuite(of: scenario, to: &page) }
      if skippedCount > 0 { writeUncheckedSuite(to: &page) }
    }
    page.newLine()
    return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + page.html
  }

  private var title: String { "\(move.source.name) to \(move.target.name)" }

  private func writeSuite(of scenario: ActualScenario, to page: inout HTMLWriter) {
    let cases = check.cases(in: scenario)
    let name = "\(title), \(ExpectationMessages.description(of: scenario))"
    let names = testNames(cases.map(\.index))
    page.element("testsuite", attributes(name, tests: cases.count, failures: cases.count { !$0.isMet })) { page in
      page.newLine()
      for (checkedCase, testName) in zip(cases, names) {
        page.element("testcase", ["classname": name, "name": testName]) { page in
          guard !checkedCase.isMet else { return }
          let sentences = checkedCase.unmet.map(messages.sentence)
          let more = sentences.count > 1 ? " (and \(HumanReadable.grouped(sentences.count - 1)) more)" : ""
          page.element("failure", ["message": (sentences.first ?? "") + more, "type": "missed"]) { page in
            // Line breaks in sentences are escaped, so each sentence is one line.
            for sentence in sentences {
              page.text(sentence)
              page.newLine()
            }
          }
        }
        page.newLine()
      }
    }
    page.newLine()
  }

  private func writeUncheckedSuite(to page: inout HTMLWriter) {
    let name = "\(title), not checked"
    let count = check.unchecked.count
    page.element("testsuite", attributes(name, tests: count, failures: 0, skipped: count)) { page in
      page.newLine()
      for testName in testNames(check.unchecked) {
        page.element("testcase", ["classname": name, "name": testName]) { page in
          page.voidElement(
            "skipped", ["message": "it is for another restore; \(SuggestedCommands.comparing) checks all four restores"]
          )
        }
        page.newLine()
      }
    }
    page.newLine()
  }

  private func attributes(
    _ name: String, tests: Int, failures: Int, skipped: Int = 0
  ) -> HTMLWriter.Attributes {
    [
      "name": name, "tests": String(tests), "failures": String(failures), "errors": "0", "skipped": String(skipped),
    ]
  }

  /// Returns the names of tests, such as "service chat.example, account anna: migrates". A repeated name ends in a
  /// number, because continuous integration distinguishes tests by name.
  private func testNames(_ indices: [Int]) -> [String] {
    var counts: [String: Int] = [:]
    return indices.map { index in
      let expectation = check.expectations[index]
      let reason = expectation.reason.map { " (\($0.rawValue))" } ?? ""
      let name = "\(ExpectationMessages.conditions(of: expectation.matcher)): \(expectation.outcome.rawValue)\(reason)"
      counts[name, default: 0] += 1
      let number = counts[name, default: 1]
      return number == 1 ? name : "\(name) #\(number)"
    }
  }
}
