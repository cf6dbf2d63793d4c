package import KeyhaulKit

/// What came of a restore, in one sentence.
package struct RestoreEnd {
  private let summary: MigrationPlan.Summary
  private let changesNothing: Bool
  private let device: String
  /// Items that were on the target as they are in the backup.
  private let sameThere: Int
  /// Items of which the target's own stayed.
  private let keptThere: Int
  /// Items that took the place of another one of the target, and how many of those were newer.
  package let overwritten: Int
  package let overwrittenNewer: Int

  package init(_ plan: MigrationPlan, device: String) {
    summary = plan.summary
    changesNothing = plan.changesNothing
    self.device = device
    // A restore that replaces puts them back as they were.
    sameThere = summary.byChange[.identical, default: 0]
    keptThere = summary.byChange[.keepsExisting, default: 0]
    overwritten = plan.overwriting.count
    overwrittenNewer = plan.overwriting.count { $0.overwrites == .newer }
  }

  /// How many items of the backup are on the target that were not there already.
  package var restored: Int { summary.migrates - sameThere - keptThere }

  /// For what is said when something fails afterwards: "14 items were restored to new-phone".
  package var clause: String {
    let removed = summary.removed == 0 ? "" : " and \(Amounts.grouped(summary.removed)) removed there"
    return "\(Amounts.count(restored, "item")) \(restored == 1 ? "was" : "were") restored to \(device)\(removed)"
  }

  /// "Restored 12 items to new-phone in one step; 3 stayed behind, 1 could not be read."
  package var sentence: String {
    let did = "Restored \(Amounts.count(restored, "item")) to \(device) in one step"
    var (head, rest) = (changesNothing ? "Nothing was restored to \(device)" : did, [String]())
    if changesNothing, summary.migrates > 0 {
      let there =
        sameThere == 1 && summary.migrates == 1
        ? "the item is" : keptThere == 0 ? "all \(Amounts.grouped(sameThere)) items are" : plural(sameThere, "item")
      head = sameThere == 0 ? "Nothing to do" : "Nothing to do: \(there) on \(device) already"
    } else if sameThere > 0, sameThere == summary.migrates, summary.removed == 0 {
      let there = sameThere == 1 ? "the item was" : "all \(Amounts.grouped(sameThere)) items were"
      head = "Nothing to restore: \(there) on \(device) already"
    } else if sameThere > 0 {
      rest.append("\(Amounts.grouped(sameThere)) \(sameThere == 1 ? "was" : "were") there already")
    }
    if keptThere > 0 {
      rest.append("\(Amounts.grouped(keptThere)) \(keptThere == 1 ? "existing item wins" : "existing items win")")
    }
    if summary.staysBehind > 0 { rest.append("\(Amounts.grouped(summary.staysBehind)) stayed behind") }
    if summary.unreadable > 0 { rest.append("\(Amounts.grouped(summary.unreadable)) could not be read") }
    if overwrittenNewer > 0 {
      let verb = overwrittenNewer == 1 ? "was" : "were"
      rest.append("\(Amounts.grouped(overwrittenNewer)) overwritten that \(verb) newer there")
    }
    if summary.removed > 0 { rest.append("\(Amounts.grouped(summary.removed)) removed") }
    return rest.isEmpty ? head + "." : "\(head); \(rest.joined(separator: ", "))."
  }

  private func plural(_ count: Int, _ noun: String) -> String {
    "\(Amounts.count(count, noun)) \(count == 1 ? "is" : "are")"
  }
}
