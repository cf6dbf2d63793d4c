import Backups
import KeychainFormats
import KeyhaulKit

/// Compares a plan with the keychain file before and after the restore, and lists the differences. It does not use the
/// rules of the planner.
struct PlanVerifier {
  let plan: MigrationPlan
  /// The backup's items in plain text, including those that this target cannot decrypt.
  let backupItems: [KeychainItem]
  let before: [ItemKey: KeychainItem]
  private let tombstonesBefore: Set<ItemKey>
  private let rowsAfter: [ItemKey: KeychainItem]
  /// The primary keys of damaged rows, whose contents are ignored.
  private let damaged: Set<ItemKey>
  private var decisionsByKey: [ItemKey: [MigrationPlan.Decision]] = [:]
  private(set) var differences: [String] = []

  init(
    _ plan: MigrationPlan, of backupItems: [KeychainItem], before: KeychainSnapshot, after: KeychainSnapshot,
    damaged: Set<ItemKey> = []
  ) {
    self.plan = plan
    self.backupItems = backupItems
    self.damaged = damaged
    self.before = before.liveItems
    tombstonesBefore = Set(before.rows.filter(\.isTombstone).compactMap(\.key))
    rowsAfter = after.rows.reduce(into: [:]) { rows, row in if let item = row.item { rows[ItemKey(item)] = item } }
    for decision in plan.decisions {
      guard case .migrates = decision.outcome else { continue }
      decisionsByKey[key(of: decision), default: []].append(decision)
    }
    if after.rows.contains(where: { $0.item == nil }) { differences.append("a row cannot be decrypted") }
    if rowsAfter.count != after.rows.count { differences.append("two rows have the same key") }
    for decision in plan.decisions { check(decision) }
    checkOtherRows()
    checkRemoved()
  }

  private func key(of decision: MigrationPlan.Decision) -> ItemKey {
    ItemKey(backupItems[decision.index], isAfterRestore: true)
  }

  /// Returns the index of the backup's item that the plan stores under a primary key.
  private func winner(_ key: ItemKey) -> Int? {
    decisionsByKey[key]?.last { $0.outcome == .migrates(.new) || $0.outcome == .migrates(.replaces) }?.index
  }

  private mutating func require(_ condition: Bool, _ decision: MigrationPlan.Decision, _ problem: String) {
    if !condition { differences.append("item \(decision.index), \(decision.outcome): \(problem)") }
  }

  private mutating func check(_ decision: MigrationPlan.Decision) {
    guard case .migrates(let change) = decision.outcome else { return }
    let item = backupItems[decision.index]
    let key = key(of: decision)
    let stored = rowsAfter[key]
    let competingDecisions = decisionsByKey[key] ?? []
    switch change {
    case .new:
      require(before[key] == nil, decision, "its key existed before")
      require(stored?.portableContents == item.portableContents, decision, "the file has other contents")
      require(winner(key) == decision.index, decision, "two items are new under one key")
      if competingDecisions.count == 1, !tombstonesBefore.contains(key) {
        require(stored?.modificationDate == item.modificationDate, decision, "its date was changed")
        require(stored?.creationDate == item.creationDate, decision, "its creation date was changed")
        if let uuid = item[.uuid] {
          require(stored?[.uuid] == uuid, decision, "its UUID was changed")
        }
      }
    case .replaces:
      require(before[key] != nil, decision, "its key did not exist before")
      require(stored?.portableContents == item.portableContents, decision, "the file has other contents")
      require(winner(key) == decision.index, decision, "two items replace one")
      if !damaged.contains(key), competingDecisions.count == 1 {
        let isDifferent =
          before[key]?.portableContents != item.portableContents
          || before[key]?.modificationDate != item.modificationDate
        require(isDifferent, decision, "the same item existed before")
      }
    case .keepsExisting:
      let expected = winner(key).map { backupItems[$0] } ?? before[key]
      require(stored != nil, decision, "no item was kept")
      require(
        stored?.portableContents == expected?.portableContents || isStoredAsIdentical(key), decision,
        "the file has other contents: \(stored?.attributes ?? [:]), expected \(expected?.attributes ?? [:]); "
          + "before \(before[key]?.attributes ?? [:]), damaged \(damaged.contains(key)), "
          + "competing \(competingDecisions.map { "\($0.index) \($0.outcome) \($0.detail ?? "")" })")
    case .identical:
      require(stored?.portableContents == item.portableContents, decision, "the file has other contents")
      let hasIdenticalItem =
        before[key]?.portableContents == item.portableContents
        || competingDecisions.contains { $0.index != decision.index }
      require(hasIdenticalItem, decision, "no identical item existed")
    }
  }

  /// Returns whether a key's row is an item that both the backup and the target have.
  private func isStoredAsIdentical(_ key: ItemKey) -> Bool {
    (decisionsByKey[key] ?? []).contains {
      $0.outcome == .migrates(.identical) && rowsAfter[key]?.portableContents == backupItems[$0.index].portableContents
    }
  }

  /// Checks that rows without a decision did not change.
  private mutating func checkOtherRows() {
    for (key, item) in before where decisionsByKey[key] == nil {
      guard let stored = rowsAfter[key] else { continue }
      // The portable contents do not show whether an item has become a tombstone.
      if stored.portableContents != item.portableContents || stored.isTombstone != item.isTombstone {
        differences.append("\(key) was changed")
      }
    }
    for key in rowsAfter.keys
    where before[key] == nil && winner(key) == nil && !tombstonesBefore.contains(key) {
      differences.append("\(key) is in neither the plan nor the old file")
    }
  }

  private mutating func checkRemoved() {
    func counts(of descriptors: [ItemDescriptor]) -> [ItemDescriptor: Int] {
      descriptors.reduce(into: [:]) { $0[$1, default: 0] += 1 }
    }
    let removed = before.filter { rowsAfter[$0.key] == nil }.map { ItemDescriptor($0.value) }
    if counts(of: removed) != counts(of: plan.removed) {
      differences.append("removed are \(removed), the plan says \(plan.removed)")
    }
    if plan.policy == .merge, !removed.isEmpty { differences.append("merging removed \(removed)") }
  }
}
