package import KeyhaulKit

/// The texts about the changes of a restore, for the question to the user and for messages without a question.
package struct RestoreLossText {
  private let plan: MigrationPlan
  /// The name of the target.
  private let device: String
  /// The decisions that replace a different item of the target, those about newer items first.
  package let overwriting: [MigrationPlan.Decision]

  package init(_ plan: MigrationPlan, device: String) {
    self.plan = plan
    self.device = device
    overwriting = plan.overwriting
  }

  /// The decisions that replace a newer item.
  package var newer: [MigrationPlan.Decision] { overwriting.filter { $0.overwrites == .newer } }
  private var removedCount: Int { plan.removed.count }
  private var newCount: Int { plan.summary.byChange[.new, default: 0] }

  /// Whether no item is removed or overwritten.
  package var isEmpty: Bool { removedCount == 0 && overwriting.isEmpty }

  /// Whether the restore adds or overwrites an item.
  package var addsOrOverwrites: Bool { newCount > 0 || !overwriting.isEmpty }

  /// The question before a restore: "Remove 2 items from new-phone, overwrite 3 there (1 is newer than the backup's) and add
  /// 12, skipping 1 that cannot be read?"
  package var question: String {
    let addition = newCount == 0 ? "add none" : "add \(HumanReadable.grouped(newCount))"
    var steps: [String] = []
    if removedCount > 0 { steps.append("remove \(HumanReadable.count(removedCount, "item")) from \(device)") }
    if !overwriting.isEmpty {
      let remark = newer.isEmpty ? "" : " (\(newerText))"
      steps.append("overwrite \(overwrittenText)\(remark)")
    }
    let lost = plan.summary.unreadable
    let change =
      isEmpty
      ? "add \(HumanReadable.count(newCount, "item")) to \(device)" : steps.joined(separator: ", ") + " and \(addition)"
    let text =
      change + (lost == 0 ? "?" : ", skipping \(HumanReadable.grouped(lost)) that cannot be read?")
    return text.prefix(1).uppercased() + text.dropFirst()
  }

  /// The warning if the user was not asked: the overwritten items that are newer on the target; `nil` if there are none.
  package var newerWarning: (message: String, why: String, advice: String)? {
    guard !newer.isEmpty else { return nil }
    let maximumCount = 3
    let items = newer.prefix(maximumCount).map { decision in
      let detail = decision.detail.map { ": \($0)" } ?? ""
      return "\(decision.identity.kind.noun) \(UntrustedText.quoted(Self.name(decision)))\(detail)"
    }
    let more = newer.count > maximumCount ? "; \(HumanReadable.grouped(newer.count - maximumCount)) more" : ""
    return (
      "overwriting \(HumanReadable.count(newer.count, "item")) on \(device), although \(newerText)",
      items.joined(separator: "; ") + more, "\(SuggestedCommands.keepingExisting) to keep the newer ones"
    )
  }

  /// A phrase about the refused changes, such as "adding 12 items, removing 2 items from new-phone and overwriting 3 there".
  package var refusal: String {
    var steps: [String] = []
    if newCount > 0 { steps.append("adding \(HumanReadable.count(newCount, "item"))") }
    if removedCount > 0 { steps.append("removing \(HumanReadable.count(removedCount, "item")) from \(device)") }
    if !overwriting.isEmpty {
      let remark = newer.isEmpty ? "" : ", of which \(newerText),"
      steps.append("overwriting \(overwrittenText)\(remark)")
    }
    return HumanReadable.list(steps)
  }

  private var overwrittenText: String {
    removedCount > 0
      ? "\(HumanReadable.grouped(overwriting.count)) there"
      : "\(HumanReadable.count(overwriting.count, "item")) on \(device)"
  }

  private var newerText: String {
    "\(HumanReadable.grouped(newer.count)) \(newer.count == 1 ? "is" : "are") newer than the backup's"
  }

  private static func name(_ decision: MigrationPlan.Decision) -> String {
    let names = decision.identity.names
    return names.isEmpty ? "item \(decision.index)" : names.joined(separator: " · ")
  }
}

/// The result of a restore in one sentence.
package struct RestoreSummaryText {
  private let summary: MigrationPlan.Summary
  private let changesNothing: Bool
  private let device: String
  /// The number of items that the target already had unchanged.
  private let identicalCount: Int
  /// The number of items for which the target's own item was kept.
  private let keptCount: Int
  /// The number of items that replaced a different item of the target.
  package let overwritten: Int
  /// The number of items that replaced a newer item of the target.
  package let overwrittenNewer: Int

  package init(_ plan: MigrationPlan, device: String) {
    summary = plan.summary
    changesNothing = plan.changesNothing
    self.device = device
    // A replacing restore removes these items and adds them again.
    identicalCount = summary.byChange[.identical, default: 0]
    keptCount = summary.byChange[.keepsExisting, default: 0]
    overwritten = plan.overwriting.count
    overwrittenNewer = plan.overwriting.count { $0.overwrites == .newer }
  }

  /// The number of the backup's items that were added to the target.
  package var restored: Int { summary.migrates - identicalCount - keptCount }

  /// A clause for errors after the restore: "14 items were restored to new-phone".
  package var clause: String {
    let removed = summary.removed == 0 ? "" : " and \(HumanReadable.grouped(summary.removed)) were removed from it"
    return "\(HumanReadable.count(restored, "item")) \(restored == 1 ? "was" : "were") restored to \(device)\(removed)"
  }

  /// The last line of a restore: "Restored 12 items to new-phone in one step; 3 stayed behind, 1 could not be read."
  package var sentence: String {
    let result = "Restored \(HumanReadable.count(restored, "item")) to \(device) in one step"
    var mainClause = changesNothing ? "Nothing was restored to \(device)" : result
    var otherClauses: [String] = []
    if changesNothing, summary.migrates > 0 {
      let subject =
        identicalCount == 1 && summary.migrates == 1
        ? "the item is"
        : keptCount == 0 ? "all \(HumanReadable.grouped(identicalCount)) items are" : plural(identicalCount, "item")
      mainClause = identicalCount == 0 ? "Nothing to do" : "Nothing to do: \(subject) already on \(device)"
    } else if identicalCount > 0, identicalCount == summary.migrates, summary.removed == 0 {
      let subject = identicalCount == 1 ? "the item was" : "all \(HumanReadable.grouped(identicalCount)) items were"
      mainClause = "Nothing to restore: \(subject) already on \(device)"
    } else if identicalCount > 0 {
      otherClauses.append(
        "\(HumanReadable.grouped(identicalCount)) \(identicalCount == 1 ? "was" : "were") already there")
    }
    if keptCount > 0 {
      otherClauses.append("\(HumanReadable.count(keptCount, "existing item")) kept")
    }
    if summary.staysBehind > 0 { otherClauses.append("\(HumanReadable.grouped(summary.staysBehind)) stayed behind") }
    if summary.unreadable > 0 { otherClauses.append("\(HumanReadable.grouped(summary.unreadable)) could not be read") }
    if overwrittenNewer > 0 {
      let verb = overwrittenNewer == 1 ? "was" : "were"
      otherClauses.append(
        "\(HumanReadable.grouped(overwrittenNewer)) that \(verb) newer on \(device) \(verb) overwritten")
    }
    if summary.removed > 0 { otherClauses.append("\(HumanReadable.grouped(summary.removed)) removed") }
    return otherClauses.isEmpty ? mainClause + "." : "\(mainClause); \(otherClauses.joined(separator: ", "))."
  }

  private func plural(_ count: Int, _ noun: String) -> String {
    "\(HumanReadable.count(count, noun)) \(count == 1 ? "is" : "are")"
  }
}
