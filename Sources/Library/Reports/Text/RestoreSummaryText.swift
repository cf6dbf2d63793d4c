package import KeyhaulKit

/// The result of a restore in one sentence.
package struct RestoreSummaryText {
  private let summary: MigrationPlan.Summary
  private let changesNothing: Bool
  private let device: String
  /// The number of items that replaced a different item of the target.
  package let overwrittenCount: Int
  /// The number of items that replaced a newer item of the target.
  package let overwrittenNewerCount: Int

  package init(_ plan: MigrationPlan, device: String) {
    summary = plan.summary
    changesNothing = plan.changesNothing
    self.device = device
    overwrittenCount = plan.overwriting.count
    overwrittenNewerCount = plan.overwriting.count { $0.overwrites == .newer }
  }

  /// The number of items that the target already had unchanged. A replacing restore removes them and adds them again.
  private var identicalCount: Int { summary.byChange[.identical, default: 0] }

  /// The number of items for which the target's own item was kept.
  private var keptCount: Int { summary.byChange[.keepsExisting, default: 0] }

  /// The number of the backup's items that were added to the target.
  package var restoredCount: Int { summary.migrates - identicalCount - keptCount }

  /// A clause for errors after the restore: "14 items were restored to new-phone".
  package var clause: String {
    let removal = summary.removed == 0 ? "" : " and \(HumanReadable.grouped(summary.removed)) were removed from it"
    let verb = restoredCount == 1 ? "was" : "were"
    return "\(HumanReadable.count(restoredCount, "item")) \(verb) restored to \(device)\(removal)"
  }

  /// The last line of a restore: "Restored 12 items to new-phone in one step; 3 stayed behind, 1 could not be read."
  package var sentence: String {
    otherClauses.isEmpty ? mainClause + "." : "\(mainClause); \(otherClauses.joined(separator: ", "))."
  }

  private var mainClause: String {
    if changesNothing { return summary.migrates > 0 ? nothingToDoClause : "Nothing was restored to \(device)" }
    if hasOnlyIdenticalItems {
      let subject = identicalCount == 1 ? "the item was" : "all \(HumanReadable.grouped(identicalCount)) items were"
      return "Nothing to restore: \(subject) already on \(device)"
    }
    return "Restored \(HumanReadable.count(restoredCount, "item")) to \(device) in one step"
  }

  /// The main clause if the target already has every item, or keeps its own.
  private var nothingToDoClause: String {
    guard identicalCount > 0 else { return "Nothing to do" }
    let subject =
      if summary.migrates == 1 {
        "the item is"
      } else if keptCount == 0 {
        "all \(HumanReadable.grouped(identicalCount)) items are"
      } else {
        "\(HumanReadable.count(identicalCount, "item")) \(identicalCount == 1 ? "is" : "are")"
      }
    return "Nothing to do: \(subject) already on \(device)"
  }

  private var hasOnlyIdenticalItems: Bool {
    identicalCount > 0 && identicalCount == summary.migrates && summary.removed == 0
  }

  /// The clauses after the main clause, such as "3 stayed behind".
  private var otherClauses: [String] {
    var clauses: [String] = []
    if identicalCount > 0, !changesNothing, !hasOnlyIdenticalItems {
      clauses.append("\(HumanReadable.grouped(identicalCount)) \(identicalCount == 1 ? "was" : "were") already there")
    }
    if keptCount > 0 { clauses.append("\(HumanReadable.count(keptCount, "existing item")) kept") }
    if summary.staysBehind > 0 { clauses.append("\(HumanReadable.grouped(summary.staysBehind)) stayed behind") }
    if summary.unreadable > 0 { clauses.append("\(HumanReadable.grouped(summary.unreadable)) could not be read") }
    if overwrittenNewerCount > 0 {
      let verb = overwrittenNewerCount == 1 ? "was" : "were"
      clauses.append(
        "\(HumanReadable.grouped(overwrittenNewerCount)) that \(verb) newer on \(device) \(verb) overwritten")
    }
    if summary.removed > 0 { clauses.append("\(HumanReadable.grouped(summary.removed)) removed") }
    return clauses
  }
}
