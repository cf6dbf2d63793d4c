package import KeyhaulKit

/// `plan` without `--to` (format `migration-futures/1`): what is lost on a new device, and on the same one, erased.
package struct FuturesReport: Report {
  package let facts: FuturesFacts

  package init(facts: FuturesFacts) { self.facts = facts }

  package func lines(style: TextStyle, showsAll: Bool) -> [String] {
    FuturesText(facts, showsAll: showsAll).lines(style: style)
  }

  package var json: JSONValue { FuturesDocument(facts).json }
  /// - Parameter program: The name and version that the page states.
  package func page(program: String) -> FuturesPage { FuturesPage(facts, program: program) }
}
