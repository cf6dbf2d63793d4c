import ArchivedKeychain
import Migration

extension Explanation {
  /// Why an item stays behind, cannot be read, or changes on the target: every word that a report can show.
  static let reasons: [Explanation] = ReportTerm.allCases.map { term in
    let explanation = term.explanation
    return Explanation(
      id: term.id, title: explanation.headline, rule: explanation.rule, effect: explanation.effect,
      advice: explanation.action, source: explanation.source)
  }
}
