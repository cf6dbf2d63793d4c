package import KeyhaulKit

/// What a restore takes away from the target and what it brings, in the words of the question and of what is said where
/// nobody is asked.
package struct RestoreLossWords {
  private let plan: MigrationPlan
  /// Its name.
  private let device: String
  /// Items in whose place another comes that is not the same, those that are newer first.
  package let overwriting: [MigrationPlan.Decision]

  package init(_ plan: MigrationPlan, device: String) {
    self.plan = plan
    self.device = device
    overwriting = plan.overwriting
  }

  /// Those of them that are newer than what comes.
  package var newer: [MigrationPlan.Decision] { overwriting.filter { $0.overwrites == .newer } }
  private var removedCount: Int { plan.removed.count }
  private var newCount: Int { plan.summary.byChange[.new, default: 0] }

  /// Whether nothing is taken away.
  package var isEmpty: Bool { removedCount == 0 && overwriting.isEmpty }

  /// Whether anything is on the target afterwards that is not there now.
  package var bringsSomething: Bool { newCount > 0 || !overwriting.isEmpty }

  /// "Remove 2 items from new-phone, overwrite 3 there (1 is newer than the backup's) and add 12, without 1 that cannot be
  /// read?"
  package var question: String {
    let addition = newCount == 0 ? "add none" : "add \(Amounts.grouped(newCount))"
    var steps: [String] = []
    if removedCount > 0 { steps.append("remove \(Amounts.count(removedCount, "item")) from \(device)") }
    if !overwriting.isEmpty {
      let remark = newer.isEmpty ? "" : " (\(newerText))"
      steps.append("overwrite \(overwrittenText)\(remark)")
    }
    let lost = plan.summary.unreadable
    let change =
      isEmpty
      ? "add \(Amounts.count(newCount, "item")) to \(device)" : steps.joined(separator: ", ") + " and \(addition)"
    let text =
      change + (lost == 0 ? "?" : ", without \(Amounts.grouped(lost)) that cannot be read?")
    return text.prefix(1).uppercased() + text.dropFirst()
  }

  /// What is said where nobody was asked: each overwritten item that is newer there, with both dates.
  package var newerWarning: (message: String, why: String, advice: String)? {
    guard !newer.isEmpty else { return nil }
    let most = 3
    let items = newer.prefix(most).map { decision in
      let detail = decision.detail.map { ": \($0)" } ?? ""
      return "\(decision.identity.kind.noun) \(HostileText.quoted(Self.name(decision)))\(detail)"
    }
    let more = newer.count > most ? "; \(Amounts.grouped(newer.count - most)) more" : ""
    return (
      "overwriting \(Amounts.count(newer.count, "item")) on \(device), although \(newerText)",
      items.joined(separator: "; ") + more, "\(Commands.keepingExisting) keeps the newer ones"
    )
  }

  /// "removing 2 items from new-phone and overwriting 3 there, of which 1 is newer than the backup's,"
  package var refusal: String {
    var steps: [String] = []
    if removedCount > 0 { steps.append("removing \(Amounts.count(removedCount, "item")) from \(device)") }
    if !overwriting.isEmpty {
      let remark = newer.isEmpty ? "" : ", of which \(newerText),"
      steps.append("overwriting \(overwrittenText)\(remark)")
    }
    return steps.joined(separator: " and ")
  }

  private var overwrittenText: String {
    removedCount > 0
      ? "\(Amounts.grouped(overwriting.count)) there" : "\(Amounts.count(overwriting.count, "item")) on \(device)"
  }

  private var newerText: String {
    "\(Amounts.grouped(newer.count)) \(newer.count == 1 ? "is" : "are") newer than the backup's"
  }

  private static func name(_ decision: MigrationPlan.Decision) -> String {
    let names = decision.identity.names
    return names.isEmpty ? "item \(decision.index)" : names.joined(separator: " · ")
  }
}
