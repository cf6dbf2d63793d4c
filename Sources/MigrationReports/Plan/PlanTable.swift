import ArchivedKeychain
import KeychainFormats
import Migration

/// Every item with what happens to it: folded, with filters that are nothing but radio buttons and style rules.
struct PlanTable {
  private let plan: PlanPage

  init(_ plan: PlanPage) { self.plan = plan }

  /// Rows that a browser lays out together, when they come into sight: of ten thousand it lays out few.
  static let rowsInPart = 50

  func write(to page: inout Markup) {
    guard !plan.decisions.isEmpty else { return }
    page.newLine()
    page.element("details", ["class": "items"]) { page in
      page.element("summary") { page in
        page.element("h2", plan.counts.total == 1 ? "The item" : "All \(Amounts.grouped(plan.counts.total)) items")
      }
      filters(&page)
      page.element("table") { page in
        page.element("thead") { page in
          page.element("tr") { page in
            page.element("th", ["scope": "col"]) { $0.element("span", ["class": "unseen"], "Sign") }
            for title in ["Item", "App", "Protection", "What happens"] {
              page.element("th", ["scope": "col"], title)
            }
          }
        }
        for start in stride(from: 0, to: plan.decisions.count, by: Self.rowsInPart) {
          page.element("tbody") { page in
            for decision in plan.decisions[start...].prefix(Self.rowsInPart) { row(decision, to: &page) }
          }
        }
      }
    }
  }

  private func row(_ decision: MigrationPlan.Decision, to page: inout Markup) {
    let words = ItemWords(decision)
    let result = Result(decision)
    page.newLine()
    page.element("tr", ["class": "\(result.style) \(decision.identity.kind.filter)"]) { page in
      page.element("td", result.symbol)
      page.element("td") { page in
        page.element("b") { $0.words(Markup.shortened(words.name)) }
        if let account = words.account { page.element("i", Markup.shortened(account)) }
        page.element("small", ItemWords.noun(decision.identity.kind))
      }
      page.element("td", app(of: decision.identity))
      page.element("td", decision.protection?.phrase ?? "unknown")
      page.element("td") { page in
        page.words(result.words)
        if let detail = result.detail { page.element("small", Markup.shortened(detail)) }
      }
    }
  }

  private func app(of identity: ItemIdentity) -> String {
    guard let group = identity.accessGroup else { return "" }
    return Markup.shortened(plan.appNames[group] ?? AppWords.name(of: group))
  }

  /// What happens to an item, in the signs and words of the table.
  private struct Result {
    let style: String
    let symbol: String
    let words: String
    let detail: String?

    init(_ decision: MigrationPlan.Decision) {
      switch decision.outcome {
      case .migrates(let change):
        style = "m"
        detail = decision.detail
        (symbol, words) =
          switch change {
          case .new: ("+", "new")
          case .replaces: ("~", "replaces the one there")
          case .keepsExisting: ("=", "the one there stays")
          case .identical: ("=", "already there")
          }
      case .staysBehind(let reason):
        (style, symbol, words, detail) = ("s", "<", "stays behind", reason.rawValue)
      case .unreadable(let reason):
        (style, symbol, words) = ("u", "!", "cannot be read")
        detail = [reason.rawValue, decision.detail].compactMap(\.self).joined(separator: ": ")
      }
    }
  }

  private struct Choice {
    let id: String
    let name: String
    let count: Int
  }

  private func filters(_ page: inout Markup) {
    let counts = plan.counts
    let outcomes = [
      Choice(id: "m", name: "move", count: counts.migrates), Choice(id: "s", name: "stay", count: counts.staysBehind),
      Choice(id: "u", name: "unreadable", count: counts.unreadable),
    ].filter { $0.count > 0 }
    let kinds = ItemKind.allCases.map { kind in
      Choice(
        id: kind.filter, name: ItemWords.noun(kind), count: plan.decisions.count { $0.identity.kind == kind })
    }.filter { $0.count > 0 }
    filter("outcome", "Show by what happens", outcomes, to: &page)
    filter("kind", "Show by kind", kinds, to: &page)
  }

  private func filter(_ group: String, _ legend: String, _ choices: [Choice], to page: inout Markup) {
    guard choices.count > 1 else { return }
    page.element("fieldset", ["class": "filter"]) { page in
      page.element("legend", ["class": "unseen"], legend)
      let all = Choice(id: "all-" + group, name: "all", count: plan.counts.total)
      for choice in [all] + choices {
        let id = "show-" + choice.id
        if choice.id == all.id {
          page.void("input", ["type": "radio", "name": group, "id": id, "checked": "checked"])
        } else {
          page.void("input", ["type": "radio", "name": group, "id": id])
        }
        page.element("label", ["for": id]) { page in
          page.words(choice.name + " ")
          page.element("span", Amounts.grouped(choice.count))
        }
      }
    }
  }
}

extension ItemKind {
  /// The class of its rows in the table.
  fileprivate var filter: String {
    switch self {
    case .genericPassword: "g"
    case .internetPassword: "i"
    case .certificate: "c"
    case .key: "k"
    }
  }
}
