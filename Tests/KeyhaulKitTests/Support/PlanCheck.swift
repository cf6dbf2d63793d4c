import Backups
import KeychainFormats
import KeyhaulKit

/// Holds a plan against what the file held before and holds after: what the plan says is what happened, or here it says
/// where not. Knows nothing of how the planner decides.
struct PlanCheck {
  let plan: MigrationPlan
  /// The archive's items in clear, whether they open for this target or not.
  let archive: [KeychainItem]
  let before: [ItemKey: KeychainItem]
  let after: [ItemKey: KeychainItem]
  private let tombstonesBefore: Set<ItemKey>
  private let rowsAfter: [ItemKey: KeychainItem]
  /// Keys of rows that are damaged: what they hold counts for nothing.
  private let damaged: Set<ItemKey>
  private var decisionsByKey: [ItemKey: [MigrationPlan.Decision]] = [:]
  private(set) var differences: [String] = []

  init(
    _ plan: MigrationPlan, of archive: [KeychainItem], before: HeldKeychain, after: HeldKeychain,
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

  /// The item of the archive that a key's row is in the end, by the plan.
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
    let rivals = decisionsByKey[key] ?? []
    switch change {
    case .new:
      require(before[key] == nil, decision, "its key was there before")
      require(held?.message == item.message, decision, "the file holds something else")
      require(winner(key) == decision.index, decision, "two items are new under one key")
      if rivals.count == 1, !tombstonesBefore.contains(key) {
        require(held?.modificationDate == item.modificationDate, decision, "its date was changed")
        require(held?.creationDate == item.creationDate, decision, "its creation date was changed")
        if let uuid = item[.uuid] {
          require(held?[.uuid] == uuid, decision, "its UUID was changed")
        }
      }
    case .replaces:
      require(before[key] != nil, decision, "its key was not there before")
      require(held?.message == item.message, decision, "the file holds something else")
      require(winner(key) == decision.index, decision, "two items replace one")
      if !damaged.contains(key), rivals.count == 1 {
        let isOther = before[key]?.message != item.message || before[key]?.modificationDate != item.modificationDate
        require(isOther, decision, "the same item was there before")
      }
    case .keepsExisting:
      let expected = winner(key).map { archive[$0] } ?? before[key]
      require(held != nil, decision, "nothing is there to keep")
      require(
        held?.message == expected?.message || heldAsIdentical(key), decision,
        "the file holds something else: \(held?.attributes ?? [:]), expected \(expected?.attributes ?? [:]); "
          + "before \(before[key]?.attributes ?? [:]), damaged \(damaged.contains(key)), "
          + "rivals \(rivals.map { "\($0.index) \($0.outcome) \($0.detail ?? "")" })")
    case .identical:
      require(held?.message == item.message, decision, "the file holds something else")
      let twin = before[key]?.message == item.message || rivals.contains { $0.index != decision.index }
      require(twin, decision, "nothing identical was there")
    }
  }

  /// The row is an item that the archive shares with the target.
  private func heldAsIdentical(_ key: ItemKey) -> Bool {
    (decisionsByKey[key] ?? []).contains {
      $0.outcome == .migrates(.identical) && rowsAfter[key]?.message == archive[$0.index].message
    }
  }

  /// Rows of which no decision speaks are what they were.
  private mutating func checkTheRest() {
    for (key, item) in before where decisionsByKey[key] == nil {
      if let held = rowsAfter[key], held.message != item.message { differences.append("\(key) was changed") }
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
