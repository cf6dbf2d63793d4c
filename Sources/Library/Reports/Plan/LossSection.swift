import KeyhaulKit

/// The sections about losses. Each reason why items do not arrive has a card: rules come first, then damage. Items that
/// may be unusable and items that the restore removes follow.
struct LossSection {
  private let page: PlanPage

  init(_ page: PlanPage) { self.page = page }

  func write(to markup: inout HTMLWriter) {
    writeSection(
      "What stays behind, and what to do", about: reasons { !$0.isDamage }, style: .stays, to: &markup)
    let lossTitle = page.source.kind == .archive ? "What this copy has lost" : "What cannot be read"
    writeSection(lossTitle, about: reasons(where: \.isLostInThisCopy), style: .lost, to: &markup)
    writeSection(
      "Cannot be restored", about: reasons { $0.isDamage && !$0.isLostInThisCopy }, style: .lost, to: &markup)
    writeWarnings(to: &markup)
    if !page.plan.removed.isEmpty { writeRemovals(to: &markup) }
  }

  /// Returns the selected reasons that occur in the plan, the most frequent first.
  private func reasons(where isSelected: (Reason) -> Bool) -> [Reason] {
    let counts = page.counts.byReason
    return Reason.allCases.filter { isSelected($0) && counts[$0] != nil }
      .sorted { counts[$0, default: 0] > counts[$1, default: 0] }
  }

  private func writeSection(
    _ title: String, about reasons: [Reason], style: Tiles.Style, to markup: inout HTMLWriter
  ) {
    guard !reasons.isEmpty else { return }
    markup.newLine()
    markup.element("section") { markup in
      markup.element("h2", title)
      for reason in reasons {
        let items = page.plan.decisions.filter { $0.outcome.reason == reason }
        ReasonCard(reason: reason, style: style, items: items.map { .init($0.index, $0.identity) }).write(to: &markup)
      }
    }
  }

  /// Writes the items that arrive but may be unusable.
  private func writeWarnings(to markup: inout HTMLWriter) {
    let warnings = ArrivalWarning.allCases.filter { page.counts.byWarning[$0] != nil }
    guard !warnings.isEmpty else { return }
    markup.newLine()
    markup.element("section") { markup in
      markup.element(
        "h2", page.isSameDevice ? "Restored, but may be unusable there" : "Moves, but may be unusable there")
      for warning in warnings {
        let items = page.plan.decisions.filter { $0.warning == warning }
        ReasonCard(
          explanation: warning.explanation, style: .stays, items: items.map { .init($0.index, $0.identity) }
        ).write(to: &markup)
      }
    }
  }

  /// Writes the items that the restore removes.
  private func writeRemovals(to markup: inout HTMLWriter) {
    let removed = page.plan.removed
    markup.newLine()
    markup.element("section") { markup in
      markup.element("h2") { markup in
        markup.text("What is removed from ")
        markup.name(page.target.name)
      }
      markup.element("article", ["class": "card gone"]) { markup in
        markup.element("p", ["class": "count"]) { markup in
          markup.element("b", HumanReadable.count(removed.count, "item"))
        }
        markup.element("h3", removed.count == 1 ? "It is then lost" : "They are then lost")
        markup.element(
          "p",
          page.plan.onlyRemoves
            ? "iOS removes the items on the device before it restores. Keyhaul refuses to do so if no item would "
              + "be restored."
            : "Like iOS, this restore first removes the items on the device. Items that sync are kept."
        )
        writeRemovalAdvice(to: &markup)
        NameList(removed.map { ItemLabel($0, index: nil) }).write(
          collapsingAfter: ReasonCard.maximumListCount, to: &markup)
      }
    }
  }

  private func writeRemovalAdvice(to markup: inout HTMLWriter) {
    let pronoun = page.plan.removed.count == 1 ? "it" : "them"
    markup.element("p", ["class": "do"]) { markup in
      markup.element("strong", "What to do. ")
      guard page.isRestoreUseful else {
        return markup.text("Do not restore: nothing would replace \(pronoun).")
      }
      markup.text("To keep \(pronoun), plan with ")
      markup.element("code", SuggestedCommands.keepingExisting)
      markup.text(".")
    }
  }
}
