import KeyhaulKit

/// A plan for a target (`--to`) in one sentence, for the first line of its report and of its page.
///
/// Without a target, the first line is `OutlookSummary.verdict`. If the backup cannot be restored as it is,
/// `BackupCondition` provides the first line instead. `PlanText` has the groups of items below it.
struct PlanVerdict {
  private let counts: MigrationPlan.Summary
  private let sourceIsBackup: Bool
  private let isSameDevice: Bool
  private let target: String

  /// Creates the verdict of a plan.
  ///
  /// - Parameters:
  ///   - counts: The numbers of the plan's items.
  ///   - sourceIsBackup: Whether the items are from a backup, which may not contain all items of its device.
  ///   - isSameDevice: Whether the target is the source device.
  ///   - target: The name of the target.
  init(_ counts: MigrationPlan.Summary, sourceIsBackup: Bool, isSameDevice: Bool, target: String) {
    self.counts = counts
    self.sourceIsBackup = sourceIsBackup
    self.isSameDevice = isSameDevice
    self.target = HTMLWriter.shortened(target)
  }

  var text: String {
    arrivalClause + Explanation.warningClause(for: counts.byWarning) + removalClause + "."
  }

  private var removalClause: String {
    guard counts.removed > 0 else { return "" }
    let items = HumanReadable.count(counts.removed, "item")
    let verb = counts.removed == 1 ? "is" : "are"
    if counts.migrates == 0 { return "; a restore would only remove \(items) from it" }
    return counts.staysBehind + counts.unreadable == 0
      ? "; \(items) on the target \(verb) removed" : ", \(items) on the target \(verb) removed"
  }

  /// The words " in the backup", which limit a statement to these items: a backup may not contain all items of its device.
  /// Empty if the source is a device.
  private var inBackup: String { sourceIsBackup ? " in the backup" : "" }

  private var arrivalClause: String {
    let total = HumanReadable.grouped(counts.total)
    switch (counts.migrates, counts.total) {
    case (_, 0): return "There is nothing to move to \(target)"
    case (0, _) where counts.byReason[.backupNotEncrypted] != nil:
      return sourceIsBackup
        ? "Nothing can move to \(target), because the backup has no password"
        : "Nothing can move to \(target) in a backup without a password"
    case (0, 1): return "The only item cannot move to \(target)"
    case (0, _): return "None of the \(total) items can move to \(target)"
    case (1, 1): return "The only item\(inBackup) \(movingVerb) to \(target)"
    case (counts.total, _): return "All \(total) items\(inBackup) \(movingVerb) to \(target)"
    default:
      let exceptions = [
        counts.staysBehind == 0
          ? nil : "\(HumanReadable.grouped(counts.staysBehind)) \(counts.staysBehind == 1 ? "stays" : "stay") behind",
        counts.unreadable == 0 ? nil : "\(HumanReadable.grouped(counts.unreadable)) cannot be read",
      ].compactMap(\.self)
      return "\(HumanReadable.grouped(counts.migrates)) of \(total) items \(movingVerb) to \(target); "
        + exceptions.joined(separator: ", ")
    }
  }

  /// The verb for the items that the target gets.
  private var movingVerb: String {
    if counts.migrates == 1 { return isSameDevice ? "is restored" : "moves" }
    return isSameDevice ? "are restored" : "move"
  }
}
