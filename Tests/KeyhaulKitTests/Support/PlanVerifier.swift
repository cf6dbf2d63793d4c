import Backups
import KeychainFormats
import KeyhaulKit

/// Compares a plan with the keychain file before and after the restore, and lists the differences. It does not use the
/// rules of the planner.
struct PlanVerifier {
  let plan: MigrationPlan
  /// The backup's items in plain text, including those that this target cannot decrypt.
  let archive: [KeychainItem]
  let before: [ItemKey: KeychainItem]
  let after: [ItemKey: KeychainItem]
  private let tombstonesBefore: Set<ItemKey>
  private let rowsAfter: [ItemKey: KeychainItem]
  /// The primary keys of damaged rows, whose contents are ignored.
  private let damaged: Set<ItemKey>
  private var decisionsByKey: [ItemKey: [MigrationPlan.Decision]] = [:]
  private(set) var differences: [String] = []

  init(
    _ plan: MigrationPlan, of archive: [KeychainItem], before: KeychainSnapshot, after: KeychainSnapshot,
    damaged: Set<ItemKey> = []
  ) {
    self.plan = plan
    self.archive = archive
    self.damaged = damaged
    self.before = before.live
    self.after = after.live
    tombstonesBefore = Set(before.rows.filter(\.isTombstone).compactMap(\.key))
    rowsAfter = after.rows.reduce(into: [:]) { rows, row in if let item = row.item { rows[ItemKey(item)] = item } }
    for decision in plan.decisions {
      guard case .migrates = decision.outcome else { continue }
      decisionsByKey[key(of: decision), default: []].append(decision)
    }
    if after.rows.contains(where: { $0.item == nil }) { differences.append("a row does not open") }
    if rowsAfter.count != after.rows.count { differences.append("two rows have the same key") }
    for decision in plan.decisions { check(decision) }
    checkTheRest()
    checkRemoved()
  }

  private func key(of decision: MigrationPlan.Decision) -> ItemKey {
    ItemKey(archive[decision.index], isArriving: true)
  }

  /// Returns the index of the backup's item that the plan stores under a primary key.
  private func winner(_ key: ItemKey) -> Int? {
    decisionsByKey[key]?.last { $0.outcome == .migrates(.new) || $0.outcome == .migrates(.replaces) }?.index
  }

  private mutating func require(_ condition: Bool, _ decision: MigrationPlan.Decision, _ claim: String) {
    if !condition { differences.append("item \(decision.index), \(decision.outcome): \(claim)") }
  }

  private mutating func check(_ decision: MigrationPlan.Decision) {
    guard case .migrates(let change) = decision.outcome else { return }
    let item = archive[decision.index]
    let key = key(of: decision)
    let held = rowsAfter[key]
    let competingDecisions = decisionsByKey[key] ?? []
    switch change {
    case .new:
      require(before[key] == nil, decision, "its key was there before")
      require(held?.portableContents == item.portableContents, decision, "the file holds something else")
      require(winner(key) == decision.index, decision, "two items are new under one key")
      if competingDecisions.count == 1, !tombstonesBefore.contains(key) {
        require(held?.modificationDate == item.modificationDate, decision, "its date was changed")
        require(held?.creationDate == item.creationDate, decision, "its creation date was changed")
        if let uuid = item[.uuid] {
          require(held?[.uuid] == uuid, decision, "its UUID was changed")
        }
      }
    case .replaces:
      require(before[key] != nil, decision, "its key was not there before")
      require(held?.portableContents == item.portableContents, decision, "the file holds something else")
      require(winner(key) == decision.index, decision, "two items replace one")
      if !damaged.contains(key), competingDecisions.count == 1 {
        let isOther =
          before[key]?.portableContents != item.portableContents
          || before[key]?.modificationDate != item.modificationDate
        require(isOther, decision, "the same item was there before")
      }
    case .keepsExisting:
      let expected = winner(key).map { archive[$0] } ?? before[key]
      require(held != nil, decision, "nothing is there to keep")
      require(
        held?.portableContents == expected?.portableContents || heldAsIdentical(key), decision,
        "the file holds something else: \(held?.attributes ?? [:]), expected \(expected?.attributes ?? [:]); "
          + "before \(before[key]?.attributes ?? [:]), damaged \(damaged.contains(key)), "
          + "rivals \(competingDecisions.map { "\($0.index) \($0.outcome) \($0.detail ?? "")" })")
    case .identical:
      require(held?.portableContents == item.portableContents, decision, "the file holds something else")
      let twin =
        before[key]?.portableContents == item.portableContents
        || competingDecisions.contains { $0.index != decision.index }
      require(twin, decision, "nothing identical was there")
    }
  }

  /// Whether the row is an item that both the backup and the target have.
  private func heldAsIdentical(_ key: ItemKey) -> Bool {
    (decisionsByKey[key] ?? []).contains {
      $0.outcome == .migrates(.identical) && rowsAfter[key]?.portableContents == archive[$0.index].portableContents
    }
  }

  /// Checks that rows without a decision did not change.
  private mutating func checkTheRest() {
    for (key, item) in before where decisionsByKey[key] == nil {
      if let held = rowsAfter[key], held.portableContents != item.portableContents {
        differences.append("\(key) was changed")
      }
    }
    for key in rowsAfter.keys
    where before[key] == nil && winner(key) == nil && !tombstonesBefore.contains(key) {
      differences.append("\(key) came from nowhere")
    }
  }

  private mutating func checkRemoved() {
    func counted(_ identities: [ItemDescriptor]) -> [ItemDescriptor: Int] {
      identities.reduce(into: [:]) { $0[$1, default: 0] += 1 }
    }
    let gone = before.filter { rowsAfter[$0.key] == nil }.map { ItemDescriptor($0.value) }
    if counted(gone) != counted(plan.removed) {
      differences.append("gone are \(gone), the plan says \(plan.removed)")
    }
    if plan.policy == .merge, !gone.isEmpty { differences.append("merging removed \(gone)") }
  }
}
