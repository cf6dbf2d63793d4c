import KeyhaulKit
import Reports

/// A file of expectations (format `plan-expectations/1`).
enum ExpectationFile {
  /// More than anyone writes by hand, in bytes.
  static let maximumByteCount = 16 << 20

  static func read(_ path: String, in session: Session) throws(CommandFailure) -> [PlanExpectation] {
    let bytes = try InputFile.read(path, atMost: maximumByteCount, what: "the expectations", in: session)
    do throws(MigrationError) {
      return try PlanExpectations(parsing: bytes).expectations
    } catch {
      throw .usage("\(InputFile.name(path)) is not a list of expectations", why: error.reason, try: error.advice)
    }
  }
}

/// `plan --expect` (format `plan-expectation-result/1`): one line for each miss, and the count.
struct ExpectationReport: Report {
  let check: ExpectationCheck
  private let report: PlanReport
  private let words: ExpectationWords

  init(_ check: ExpectationCheck, _ report: PlanReport) {
    self.check = check
    self.report = report
    words = ExpectationWords(check, source: report.document.source)
  }

  func lines(style: TextStyle, showsAll: Bool) -> [String] {
    var lines = check.cases.flatMap { found in found.misses.map { words.line(of: $0, in: found.setting) } }
    if showsAll { lines += check.cases.filter(\.isMet).map(words.line(ofMet:)) }
    return lines.map { style.adapted(HostileText.shown($0)) } + report.source.unseenLines(style: style)
      + [words.verdict]
  }

  private var move: MoveDocument { MoveDocument(report.document) }

  var json: JSONValue { ExpectationDocument(check, move: move).json }
  var junit: [UInt8] { Array(ExpectationTestReport(check, move: move).xml.utf8) }
}
