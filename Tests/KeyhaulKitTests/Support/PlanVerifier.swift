import Backups
import KeychainFormats
import KeyhaulKit

/// Compares a plan with the keychain file before and after the restore, and lists the differences. It does not use the
/// rules of the planner.
struct PlanVerifier {
  let plan: MigrationPlan
  /// The backup's items in plain text, including those that this target cannot decrypt.
  let backupItems: [KeychainItem]
  /// The items before the restore, without tombstones.
  private let itemsBefore: [ItemKey: KeychainItem]
  private let tombstonesBefore: Set<ItemKey>
  /// The items after the restore, tombstones included.
  private let itemsAfter: [ItemKey: KeychainItem]
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
    itemsBefore = before.liveItems
    tombstonesBefore = Set(before.rows.filter(\.isTombstone).compactMap(\.key))
    itemsAfter = after.rows.reduce(into: [:]) { rows, row in if let item = row.item { rows[ItemKey(item)] = item } }
    for decision in plan.decisions {
      guard case .migrates = decision.outcome else { continue }
      decisionsByKey[key(of: decision), default: []].append(decision)
    }
    if after.rows.contains(where: { $0.item == nil }) { differences.append("a row cannot be decrypted") }
    if itemsAfter.count != after.rows.count { differences.append("two rows have the same key") }
    for decision in plan.decisions { check(decision) }
    checkOtherRows()
    checkRemoved()
  }

  private func key(of decision: MigrationPlan.Decision) -> ItemKey {
    ItemKey(backupItems[decision.index], isAfterRestore: true)
  }

  /// Returns the index of the backup item that is stored under a key at the end, according to the plan; `nil` if none
  /// is. Several backup items can have the same key.
  private func indexOfStoredItem(for key: ItemKey) -> Int? {
    decisionsByKey[key]?.last { $0.outcome == .migrates(.new) || $0.outcome == .migrates(.replaces) }?.index
  }

  private mutating func require(_ condition: Bool, _ decision: MigrationPlan.Decision, _ problem: String) {
    if !condition { differences.append("item \(decision.index), \(decision.outcome): \(problem)") }
  }

  private mutating func check(_ decision: MigrationPlan.Decision) {
    guard case .migrates(let change) = decision.outcome else { return }
    let item = backupItems[decision.index]
    let key = key(of: decision)
    let stored = itemsAfter[key]
    let competingDecisions = decisionsByKey[key] ?? []
    switch change {
    case .new:
      require(itemsBefore[key] == nil, decision, "its key existed before")
      require(stored?.portableContents == item.portableContents, decision, "the file has other contents")
      require(indexOfStoredItem(for: key) == decision.index, decision, "two items are new under one key")
      if competingDecisions.count == 1, !tombstonesBefore.contains(key) {
        require(stored?.modificationDate == item.modificationDate, decision, "its date was changed")
        require(stored?.creationDate == item.creationDate, decision, "its creation date was changed")
        if let uuid = item[.uuid] {
          require(stored?[.uuid] == uuid, decision, "its UUID was changed")
        }
      }
    case .replaces:
      require(itemsBefore[key] != nil, decision, "its key did not exist before")
      require(stored?.portableContents == item.portableContents, decision, "the file has other contents")
      require(indexOfStoredItem(for: key) == decision.index, decision, "two items replace one")
      if !damaged.contains(key), competingDecisions.count == 1 {
        let isDifferent =
          itemsBefore[key]?.portableContents != item.portableContents
          || itemsBefore[key]?.modificationDate != item.modificationDate
        require(isDifferent, decision, "the same item existed before")
      }
    case .keepsExisting:
      // The item that was kept may also be identical to another backup item with this key.
      let expected = indexOfStoredItem(for: key).map { backupItems[$0] } ?? itemsBefore[key]
      require(stored != nil, decision, "no item was kept")
      require(
        stored?.portableContents == expected?.portableContents || isIdenticalItem(at: key), decision,
        "the file has other contents: \(stored?.attributes ?? [:]), expected \(expected?.attributes ?? [:]); "
          + "before \(itemsBefore[key]?.attributes ?? [:]), damaged \(damaged.contains(key)), "
          + "competing \(competingDecisions.map { "\($0.index) \($0.outcome) \($0.detail ?? "")" })")
    case .identical:
      require(stored?.portableContents == item.portableContents, decision, "the file has other contents")
      let hasIdenticalItem =
        itemsBefore[key]?.portableContents == item.portableContents
        || competingDecisions.contains { $0.index != decision.index }
      require(hasIdenticalItem, decision, "no identical item existed")
    }
  }

  /// Returns whether the item with this key is identical to a backup item, as the plan says.
  private func isIdenticalItem(at key: ItemKey) -> Bool {
    (decisionsByKey[key] ?? []).contains {
      $0.outcome == .migrates(.identical) && itemsAfter[key]?.portableContents == backupItems[$0.index].portableContents
    }
  }

  /// Checks that the restore did not change the items without a decision, and added no other items.
  private mutating func checkOtherRows() {
    for (key, item) in itemsBefore where decisionsByKey[key] == nil {
      guard let stored = itemsAfter[key] else { continue }
      // The portable contents do not show whether an item has become a tombstone.
      if stored.portableContents != item.portableContents || stored.isTombstone != item.isTombstone {
        differences.append("\(key) was changed")
      }
    }
    for key in itemsAfter.keys
    where itemsBefore[key] == nil && indexOfStoredItem(for: key) == nil && !tombstonesBefore.contains(key) {
      differences.append("\(key) was added, but the plan does not add it")
    }
  }

  /// Checks that the removed items are those of the plan.
  private mutating func checkRemoved() {
    func counts(of descriptors: [ItemDescriptor]) -> [ItemDescriptor: Int] {
      descriptors.reduce(into: [:]) { $0[$1, default: 0] += 1 }
    }
    let removed = itemsBefore.filter { itemsAfter[$0.key] == nil }.map { ItemDescriptor($0.value) }
    if counts(of: removed) != counts(of: plan.removed) {
      differences.append("the restore removed \(removed), the plan has \(plan.removed)")
    }
    if plan.policy == .merge, !removed.isEmpty { differences.append("merging removed \(removed)") }
  }
}
