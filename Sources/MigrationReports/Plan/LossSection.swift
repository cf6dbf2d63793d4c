import ArchivedKeychain
import KeychainFormats
import Migration

/// What does not arrive, why, and what to do about it: one card for each reason, damage after rules; then what the
/// restore removes.
struct LossSection {
  private let plan: PlanPage

  init(_ plan: PlanPage) { self.plan = plan }

  /// The most items that a card names; the table has the others.
  static let longestList = 10

  func write(to page: inout Markup) {
    let rules = reasons { !$0.isDamage }
    let damage = reasons(where: \.isDamage)
    if !rules.isEmpty {
      section("What stays behind, and what to do", rules, style: "stays", to: &page)
    }
    if !damage.isEmpty {
      section("What this copy has lost", damage, style: "lost", to: &page)
    }
    if !plan.removed.isEmpty { removal(&page) }
  }

  /// Those that occur, the most frequent first.
  private func reasons(where isMeant: (Reason) -> Bool) -> [Reason] {
    Reason.allCases.filter { isMeant($0) && plan.counts.byReason[$0] != nil }
      .sorted { plan.counts.byReason[$0, default: 0] > plan.counts.byReason[$1, default: 0] }
  }

  private func section(_ title: String, _ reasons: [Reason], style: String, to page: inout Markup) {
    page.newLine()
    page.element("section") { page in
      page.element("h2", title)
      for reason in reasons { card(reason, style: style, to: &page) }
    }
  }

  private func card(_ reason: Reason, style: String, to page: inout Markup) {
    let decisions = plan.decisions.filter { $0.reason == reason }
    let explanation = reason.explanation
    page.element("article", ["class": "card \(style)"]) { page in
      page.element("p", ["class": "count"]) { page in
        page.element("b", Amounts.count(decisions.count, "item"))
        page.element("code", reason.rawValue)
      }
      page.element("h3", Self.capitalized(explanation.headline))
      page.element("p", explanation.rule + " " + explanation.effect)
      page.element("p", ["class": "do"]) { page in
        page.element("strong", "What to do. ")
        page.words(explanation.action)
      }
      list(
        decisions.map { ItemWords($0) }, numbers: decisions.map(\.index), details: decisions.map(\.detail), to: &page)
    }
  }

  private func removal(_ page: inout Markup) {
    page.newLine()
    page.element("section") { page in
      page.element("h2") { page in
        page.words("What is removed from ")
        page.name(plan.target.name)
      }
      page.element("article", ["class": "card gone"]) { page in
        page.element("p", ["class": "count"]) { page in
          page.element("b", Amounts.count(plan.removed.count, "item"))
        }
        page.element("h3", plan.removed.count == 1 ? "It is gone afterwards" : "They are gone afterwards")
        page.element(
          "p",
          "iOS removes what is on the device before it restores, and so does this restore. What synchronizes stays.")
        page.element("p", ["class": "do"]) { page in
          page.element("strong", "What to do. ")
          page.words("To keep them, plan with ")
          page.element("code", "--existing merge")
          page.words(".")
        }
        removedList(&page)
      }
    }
  }

  private func removedList(_ page: inout Markup) {
    let words = plan.removed.map { ItemWords($0, index: nil) }
    let first = words.prefix(Self.longestList)
    names(Array(first), to: &page)
    guard words.count > first.count else { return }
    page.element("details") { page in
      page.element("summary", "\(Amounts.grouped(words.count - first.count)) more")
      names(Array(words.dropFirst(first.count)), to: &page)
    }
  }

  /// Names where there are any; of sealed items, whose names are sealed with them, only the numbers.
  private func list(_ words: [ItemWords], numbers: [Int], details: [String?], to page: inout Markup) {
    let named = words.filter { !$0.isSealed }
    let sealed = zip(words, numbers).filter(\.0.isSealed).map(\.1)
    names(Array(named.prefix(Self.longestList)), to: &page)
    if named.count > Self.longestList {
      page.element(
        "p", ["class": "more"], "\(Amounts.grouped(named.count - Self.longestList)) more stand in the table below.")
    }
    guard !sealed.isEmpty else { return }
    let shown = sealed.prefix(Self.longestList).map { Amounts.grouped($0) }
    let rest = sealed.count - shown.count
    let places = Amounts.list(rest > 0 ? shown + ["\(Amounts.grouped(rest)) more"] : shown)
    page.element(
      "p", ["class": "more"],
      (sealed.count == 1 ? "Its name is sealed with it: item " : "Their names are sealed with them: items ") + places
        + " of the backup.")
  }

  private func names(_ words: [ItemWords], to page: inout Markup) {
    guard !words.isEmpty else { return }
    page.element("ul", ["class": "names"]) { page in
      for item in words { page.element("li") { item.write(to: &$0) } }
    }
  }

  private static func capitalized(_ text: String) -> String { text.prefix(1).uppercased() + text.dropFirst() }
}

extension MigrationPlan.Decision {
  /// Why it does not arrive; `nil` where it does.
  var reason: Reason? {
    switch outcome {
    case .migrates: nil
    case .staysBehind(let reason), .unreadable(let reason): reason
    }
  }
}
