import KeyhaulKit
import Reports

/// `plan` without `--to` (format `migration-futures/1`): what is lost on a new device, and on the same one, erased.
struct FuturesReport: Report {
  let facts: FuturesFacts

  func lines(style: TextStyle, showsAll: Bool) -> [String] {
    FuturesText(facts, showsAll: showsAll).lines(style: style)
  }

  var json: JSONValue { FuturesDocument(facts).json }
  var page: FuturesPage { FuturesPage(facts, program: ProgramVersion.signature) }
}
