package import KeyhaulKit

/// The question before a restore: its text, the losses that are listed above it, and the texts that replace it if there is
/// no question.
package struct RestoreQuestion {
  private let report: PlanReport
  /// The decisions that replace a different item of the target. Decisions about newer items come first.
  private let overwriting: [MigrationPlan.Decision]

  package init(_ report: PlanReport) {
    self.report = report
    overwriting = report.plan.overwriting
  }

  /// The decisions that replace a newer item.
  private var overwritingNewer: [MigrationPlan.Decision] { overwriting.filter { $0.overwrites == .newer } }
  private var removedCount: Int { report.plan.removed.count }
  private var newCount: Int { report.plan.summary.byChange[.new, default: 0] }
  /// The name of the target.
  private var device: String { report.target.name }

  /// Whether the target loses items: some are removed or overwritten.
  package var hasLosses: Bool { removedCount > 0 || !overwriting.isEmpty }

  /// Whether the restore adds or overwrites an item.
  package var addsOrOverwrites: Bool { newCount > 0 || !overwriting.isEmpty }

  /// Returns the short form of a plan: the heading, the names of the items that are lost, and the counts.
  ///
  /// Items that are newer on the target than in the backup come first. Removed items, other overwritten items and
  /// unreadable items follow.
  package func lines(style: TextStyle, showsAll: Bool) -> [String] {
    let planText = report.text(showsAll: showsAll)
    func group<Item>(_ title: String, _ items: [Item], row: (Item) -> ReportItemTable.Row) -> [String] {
      guard !items.isEmpty else { return [] }
      let heading = style.adapted(UntrustedText.escaped("\(title) (\(HumanReadable.grouped(items.count)))"))
      return [heading] + ReportItemTable(items, showsAll: showsAll, row: row).lines(style: style) + [""]
    }
    let (source, target) = (report.source.name, report.target.name)
    let otherOverwriting = overwriting.filter { $0.overwrites != .newer }
    let losses =
      group("Newer on \(target), but overwritten by \(source)", overwritingNewer, row: planText.row)
      + group("Removed from \(target)", report.plan.removed, row: planText.removedRow)
      + group("Overwritten on \(target)", otherOverwriting, row: planText.row)
    return report.heading(style: style) + [""] + losses + planText.damageLines(style: style)
      + WordWrap.lines(of: style.adapted(UntrustedText.escaped(planText.summaryLine)), columns: style.width)
  }

  /// The text of the question: "Remove 2 items from new-phone, overwrite 3 there (1 is newer than the backup's) and add
  /// 12, skipping 1 that cannot be read?"
  package var text: String {
    let changes = hasLosses ? changePhrase : "add \(HumanReadable.count(newCount, "item")) to \(device)"
    let unreadableCount = report.plan.summary.unreadable
    let skippedClause =
      unreadableCount == 0 ? "" : ", skipping \(HumanReadable.grouped(unreadableCount)) that cannot be read"
    return changes.prefix(1).uppercased() + changes.dropFirst() + skippedClause + "?"
  }

  /// The changes of a restore that removes or overwrites items: "remove 2 items from new-phone, overwrite 3 there and add
  /// 12".
  private var changePhrase: String {
    var losses: [String] = []
    if removedCount > 0 { losses.append("remove \(HumanReadable.count(removedCount, "item")) from \(device)") }
    if !overwriting.isEmpty {
      let suffix = overwritingNewer.isEmpty ? "" : " (\(newerClause))"
      losses.append("overwrite \(overwrittenItemsText)\(suffix)")
    }
    let addition = newCount == 0 ? "add none" : "add \(HumanReadable.grouped(newCount))"
    return losses.joined(separator: ", ") + " and " + addition
  }

  /// The warning about overwriting items that are newer on the target, for a restore without a question. `nil` if no newer
  /// item is overwritten.
  package var newerWarning: (message: String, why: String, advice: String)? {
    let decisions = overwritingNewer
    guard !decisions.isEmpty else { return nil }
    var items = decisions.prefix(Self.maximumNameCount).map { decision in
      let detail = decision.detail.map { ": \($0)" } ?? ""
      return "\(decision.identity.kind.noun) \(UntrustedText.quoted(Self.name(decision)))\(detail)"
    }
    let omittedCount = decisions.count - items.count
    if omittedCount > 0 { items.append("\(HumanReadable.grouped(omittedCount)) more") }
    return (
      "overwriting \(HumanReadable.count(decisions.count, "item")) on \(device), although \(newerClause)",
      items.joined(separator: "; "), "\(SuggestedCommands.keepingExisting) to keep the newer ones"
    )
  }

  /// The maximum number of items that the warning names.
  private static let maximumNameCount = 3

  /// The changes that need the user's agreement, such as "adding 12 items, removing 2 items from new-phone and overwriting 3
  /// there".
  package var action: String {
    var steps: [String] = []
    if newCount > 0 { steps.append("adding \(HumanReadable.count(newCount, "item"))") }
    if removedCount > 0 { steps.append("removing \(HumanReadable.count(removedCount, "item")) from \(device)") }
    if !overwriting.isEmpty {
      let suffix = overwritingNewer.isEmpty ? "" : ", of which \(newerClause),"
      steps.append("overwriting \(overwrittenItemsText)\(suffix)")
    }
    return HumanReadable.list(steps)
  }

  /// The overwritten items: "3 items on new-phone", or "3 there" after a phrase that names the target.
  private var overwrittenItemsText: String {
    removedCount > 0
      ? "\(HumanReadable.grouped(overwriting.count)) there"
      : "\(HumanReadable.count(overwriting.count, "item")) on \(device)"
  }

  /// A clause such as "1 is newer than the backup's".
  private var newerClause: String {
    let count = overwritingNewer.count
    return "\(HumanReadable.grouped(count)) \(count == 1 ? "is" : "are") newer than the backup's"
  }

  private static func name(_ decision: MigrationPlan.Decision) -> String {
    let names = decision.identity.names
    return names.isEmpty ? "item \(decision.index)" : names.joined(separator: " · ")
  }
}
