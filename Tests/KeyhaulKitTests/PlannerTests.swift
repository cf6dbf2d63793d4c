import Backups
import KeychainCrypto
import KeychainFormats
import KeychainRules
import TestSupport
import Testing

@testable import KeyhaulKit

/// Returns a target's row for an item, as if it had been read from a database.
private func row(
  _ item: KeychainItem, isRemoved: Bool = true, isSystemBound: Bool = false, state: ExistingRow.State? = nil
) throws -> TargetRow {
  let itemState = ExistingRow.State.item(modificationDate: item.modificationDate, digest: try item.digest())
  return TargetRow(
    primaryKey: try PrimaryKey(of: stored(item)), identity: ItemDescriptor(item),
    existing: ExistingRow(state: state ?? itemState), item: item, isRemovedByReplace: isRemoved,
    isSystemBound: isSystemBound,
    isTombstone: item.isTombstone)
}

private func stored(_ item: KeychainItem) throws -> KeychainItem { try IncomingItem(item).item }

private func decryptedItems(_ items: [KeychainItem]) -> [BackupItem] {
  items.enumerated().map { index, item in
    BackupItem(
      index: index, kind: item.kind, protection: item.protection, classKey: .available, opening: .opened(item))
  }
}

/// Returns an item that cannot be decrypted.
private func failed(
  _ index: Int, _ failure: BackupItem.Failure, protection: ProtectionClass? = .whenUnlockedThisDeviceOnly,
  classKey: ClassKeyAvailability = .availableThroughDevice
) -> BackupItem {
  BackupItem(
    index: index, kind: .genericPassword, protection: protection, blob: .init(byteCount: 312, offset: 7994),
    classKey: classKey, opening: .failed(failure))
}

/// Returns an item that is decrypted with the device key.
private func deviceProof(
  _ index: Int, protection: ProtectionClass = .whenUnlockedThisDeviceOnly
) -> BackupItem {
  let item = KeychainItem.password("proof", protection)
  return BackupItem(
    index: index, kind: item.kind, protection: item.protection, classKey: .availableThroughDevice,
    opening: .opened(item))
}

private typealias Outcome = MigrationPlan.Outcome

@Suite("Conflicts between backup and target")
struct PlannerConflictTests {
  private let targetItem = KeychainItem.password("a").with(secret: "target")

  /// Returns the outcome of restoring an item to a target with one row.
  private func outcome(
    _ incoming: KeychainItem, _ row: TargetRow, policy: ExistingItemPolicy = .merge
  ) -> Outcome? {
    MigrationPlanner.plan(decryptedItems([incoming]), onto: [row], policy: policy).decisions.first?.outcome
  }

  @Test("The later date wins")
  func dates() throws {
    let incoming = targetItem.with(secret: "backup")
    // "Migrates" means that the key is on the target afterwards, whichever item wins.
    #expect(try outcome(incoming.dated(1000.001), row(targetItem)) == .migrates(.replaces))
    #expect(try outcome(incoming.dated(999.999), row(targetItem)) == .migrates(.keepsExisting))
  }

  @Test(
    "Overwritten items are reported, newer ones first, without identical items",
    arguments: ExistingItemPolicy.allCases)
  func overwritten(_ policy: ExistingItemPolicy) throws {
    let incoming = ["older", "newer", "same", "damaged", "undated", "deleted", "free"].map { KeychainItem.password($0) }
    let rows = try [
      row(incoming[0].with(secret: "x").dated(999)), row(incoming[1].with(secret: "x").dated(1001)), row(incoming[2]),
      row(incoming[3], state: .corrupt), row(incoming[4].with(secret: "x").without(.modificationDate)),
      row(incoming[5], state: .tombstone(uuid: nil, persistentReference: nil)),
    ]
    let plan = MigrationPlanner.plan(decryptedItems(incoming), onto: rows, policy: policy)
    var accounts: [String?] = ["undated", "damaged", "older"]
    var relations: [MigrationPlan.OverwrittenItem?] = [.undated, .damaged, .olderOrEqual]
    // A merge keeps the newer item of the target.
    if policy == .replace {
      accounts.insert("newer", at: 0)
      relations.insert(.newer, at: 0)
    }
    #expect(plan.overwriting.map(\.identity.account) == accounts)
    #expect(plan.overwriting.map(\.overwrites) == relations)
    #expect(plan.redacted.overwriting.map(\.overwrites) == plan.overwriting.map(\.overwrites))
  }

  @Test(
    "An overwritten item counts as newer if its date is a millisecond later, but not if the dates are equal",
    arguments: [(999.999, .olderOrEqual), (1000, .olderOrEqual), (1000.001, .newer)]
      as [(Double, MigrationPlan.OverwrittenItem)])
  func overwrittenDates(seconds: Double, expected: MigrationPlan.OverwrittenItem) throws {
    let existing = try row(targetItem.dated(seconds).with(secret: "x"))
    let plan = MigrationPlanner.plan(decryptedItems([targetItem.dated(1000)]), onto: [existing], policy: .replace)
    #expect(plan.overwriting.map(\.overwrites) == [expected])
  }

  @Test("If the dates are equal, the smaller digest wins; if the digests are equal, the target's item stays")
  func digests() throws {
    let incoming = targetItem.with(secret: "backup")
    let isSmaller = try incoming.digest().lexicographicallyPrecedes(targetItem.digest())
    let (small, large) = isSmaller ? (incoming, targetItem) : (targetItem, incoming)
    #expect(try outcome(small, row(large)) == .migrates(.replaces))
    #expect(try outcome(large, row(small)) == .migrates(.keepsExisting))
    #expect(try outcome(targetItem, row(targetItem)) == .migrates(.identical))
  }

  @Test("A missing date loses against any date")
  func undated() throws {
    let undated = targetItem.without(.modificationDate)
    #expect(try outcome(undated, row(targetItem)) == .migrates(.keepsExisting))
    #expect(try outcome(targetItem, row(undated)) == .migrates(.replaces))
    #expect(try outcome(undated, row(undated)) == .migrates(.identical))
  }

  @Test("A damaged row and a tombstone lose even against an older item")
  func damagedRowAndTombstone() throws {
    let older = targetItem.dated(1)
    #expect(try outcome(older, row(targetItem, state: .corrupt)) == .migrates(.replaces))
    let tombstone = targetItem.with([.tombstone: .integer(1)])
    let state = ExistingRow.State.tombstone(uuid: nil, persistentReference: nil)
    #expect(try outcome(older, row(tombstone, state: state)) == .migrates(.new))
  }

  @Test("A replacing restore removes the row first, so the date does not matter")
  func replacing() throws {
    let older = targetItem.with(secret: "older").dated(1)
    #expect(try outcome(older, row(targetItem), policy: .replace) == .migrates(.replaces))
    #expect(try outcome(older, row(targetItem, isRemoved: false), policy: .replace) == .migrates(.keepsExisting))
    #expect(try outcome(targetItem, row(targetItem), policy: .replace) == .migrates(.identical))
  }

  @Test("A conflict reports both dates, except for identical items")
  func detail() throws {
    let plan = MigrationPlanner.plan(
      decryptedItems([targetItem.with(secret: "x").dated(600_000_000), targetItem.dated(600_000_000)]), only: [0],
      onto: [try row(targetItem.dated(700_000_000))], policy: .merge)
    #expect(plan.decisions.map(\.detail) == ["on the target: 2023-03-08; in the backup: 2020-01-06"])
    let identical = MigrationPlanner.plan(decryptedItems([targetItem]), onto: [try row(targetItem)], policy: .merge)
    #expect(identical.decisions.map(\.detail) == [nil])
  }

  /// The position of the import's item in the backup; `nil` if the item is the target's own.
  private func backupPosition(of planned: MigrationPlan.PlannedImport) -> UInt32? {
    if case .archive(let position) = planned.origin { position } else { nil }
  }

  @Test("A plan removes the items that nothing replaces")
  func removed() throws {
    let rows = [
      try row(.password("taken")), try row(.password("gone")), try row(.password("kept"), isRemoved: false),
      try row(.password("deleted", attributes: [.tombstone: .integer(1)])),
      try row(.password("bound", group: "com.apple.security.sos"), isSystemBound: true),
    ]
    let items = decryptedItems([.password("taken").dated(1), .password("arriving")])
    let replacing = MigrationPlanner.plan(items, onto: rows, policy: .replace)
    #expect(replacing.removed.map(\.account) == ["gone"])
    #expect(replacing.removedRowCount == 4)
    #expect(replacing.imports.map(backupPosition) == [0, 1, nil])
    let merging = MigrationPlanner.plan(items, onto: rows, policy: .merge)
    #expect(merging.removed.isEmpty)
    #expect(merging.removedRowCount == 0)
    #expect(merging.imports.count == 2)
  }

  @Test("The system's own item is put back and wins if it is newer")
  func preserved() throws {
    let systemItem = KeychainItem.password("own", attributes: [.systemBound: .integer(1)])
    let incoming = KeychainItem.password("own")
    func plan(dated seconds: Double) throws -> MigrationPlan {
      MigrationPlanner.plan(
        decryptedItems([incoming.dated(seconds)]), onto: [try row(systemItem, isSystemBound: true)], policy: .replace)
    }
    let withOlderItem = try plan(dated: 1)
    #expect(withOlderItem.decisions.map(\.outcome) == [.migrates(.keepsExisting)])
    #expect(withOlderItem.decisions.map(\.detail) == ["the system's own item with the same key wins"])
    let withNewerItem = try plan(dated: 2000)
    #expect(withNewerItem.decisions.map(\.outcome) == [.migrates(.replaces)])
    #expect(withNewerItem.removed.isEmpty)
  }

  @Test("A tombstone of the system is put back only if the device syncs", arguments: [true, false])
  func preservedTombstone(syncs: Bool) throws {
    let tombstone = KeychainItem.password("own", attributes: [.systemBound: .integer(1), .tombstone: .integer(1)])
    let plan = MigrationPlanner.plan(
      [], onto: [try row(tombstone, isSystemBound: true)], policy: .replace,
      context: RestoreContext(targetSyncs: syncs))
    #expect(plan.imports.count == (syncs ? 1 : 0))
    #expect(plan.removed.isEmpty)
  }
}

@Suite("Conflicts within a backup")
struct DuplicateKeyTests {
  private func decisions(_ items: [KeychainItem]) -> [MigrationPlan.Decision] {
    MigrationPlanner.plan(decryptedItems(items), onto: [], policy: .replace).decisions
  }

  private func item(_ secret: String, at seconds: Double) -> KeychainItem {
    .password("a").with(secret: secret).dated(seconds)
  }

  @Test("With rising dates, the last item remains")
  func rising() {
    let decisions = decisions([item("x", at: 1), item("y", at: 2), item("z", at: 3)])
    #expect(decisions.map(\.outcome) == [.migrates(.keepsExisting), .migrates(.keepsExisting), .migrates(.new)])
    #expect(
      decisions.map(\.detail) == [
        "item 1 of this backup has the same key and wins", "item 2 of this backup has the same key and wins",
        "item 1 of this backup has the same key and loses",
      ])
  }

  @Test("With falling dates, the first item remains")
  func falling() {
    let decisions = decisions([item("x", at: 3), item("y", at: 2), item("z", at: 1)])
    #expect(decisions.map(\.outcome) == [.migrates(.new), .migrates(.keepsExisting), .migrates(.keepsExisting)])
    #expect(decisions[2].detail == "item 0 of this backup has the same key and wins")
  }

  @Test("Of three identical items, one is new and the others change nothing")
  func same() {
    let decisions = decisions([item("x", at: 1), item("x", at: 1), item("x", at: 1)])
    #expect(decisions.map(\.outcome) == [.migrates(.new), .migrates(.identical), .migrates(.identical)])
    #expect(decisions[1].detail == "the same as item 0 of this backup")
  }

  @Test("A tie moves the row's date one millisecond ahead, so a third item within this millisecond loses")
  func millisecond() throws {
    // Whichever item wins by its digest, the date of the row becomes 1.001.
    let decisions = decisions([item("x", at: 1), item("y", at: 1), item("z", at: 1.0005)])
    #expect(decisions[2].outcome == .migrates(.keepsExisting))
    #expect(Set(decisions.prefix(2).map(\.outcome)) == [.migrates(.new), .migrates(.keepsExisting)])
  }

  @Test("An item that equals the target's item loses if a newer item of the backup replaces it")
  func equalThenReplaced() throws {
    let existing = item("x", at: 1)
    let plan = MigrationPlanner.plan(
      decryptedItems([existing, item("y", at: 2)]), onto: [try row(existing)], policy: .merge)
    #expect(plan.decisions.map(\.outcome) == [.migrates(.keepsExisting), .migrates(.replaces)])
  }

  @Test("A tombstone loses against any item of the same backup on a device that syncs")
  func tombstone() {
    let deleted = item("x", at: 9).with([.tombstone: .integer(1)])
    let plan = MigrationPlanner.plan(
      decryptedItems([deleted, item("y", at: 1)]), onto: [], policy: .replace,
      context: RestoreContext(targetSyncs: true))
    #expect(plan.decisions.map(\.outcome) == [.migrates(.keepsExisting), .migrates(.new)])
    #expect(plan.imports.last?.outcome == .replaces(.existingTombstone))
  }
}

@Suite("Evidence for the source device")
struct SameDeviceEvidenceTests {
  private func plan(_ items: [BackupItem], only: Set<Int>? = nil, hasPassword: Bool = true) -> MigrationPlan {
    MigrationPlanner.plan(
      items, only: only, onto: [], policy: .replace, context: RestoreContext(backupHasPassword: hasPassword))
  }

  @Test("If the device key was tried on no item, it is unknown whether the target is the source device")
  func unknown() {
    #expect(plan([]).isSameDevice == nil)
    #expect(plan(decryptedItems([.password("a")])).isSameDevice == nil)
    #expect(
      plan([failed(0, .hardwareMissing, protection: .whenUnlockedThisDeviceOnly, classKey: .deviceBound)]).isSameDevice
        == nil)
    #expect(plan([failed(0, .tagMismatch, protection: .whenUnlocked, classKey: .available)]).isSameDevice == nil)
    #expect(
      plan([failed(0, .malformed("no item"), protection: .whenUnlocked, classKey: .available)]).isSameDevice == nil)
    #expect(plan([failed(0, .noClassKey(.alwaysThisDeviceOnly))]).isSameDevice == nil)
  }

  @Test("An item whose key can be unwrapped proves the device, even if its content is damaged")
  func proven() {
    #expect(plan([deviceProof(0)]).isSameDevice == true)
    #expect(plan([failed(0, .keyUnwrapFailed), deviceProof(1)]).isSameDevice == true)
    #expect(plan([failed(0, .tagMismatch)]).isSameDevice == true)
    #expect(plan([failed(0, .malformed("no item"))]).isSameDevice == true)
  }

  @Test("The target is a different device if no item's key can be unwrapped")
  func refuted() {
    #expect(plan([failed(0, .keyUnwrapFailed), failed(1, .keyUnwrapFailed)]).isSameDevice == false)
  }

  @Test("The evidence decides whether an item is damaged or bound to another device")
  func damagedOrBound() {
    let bound = plan([failed(0, .keyUnwrapFailed)]).decisions[0]
    #expect(bound.outcome == .staysBehind(.deviceBound))
    #expect(bound.detail == "only the source device's key can decrypt it")
    let damaged = plan([failed(0, .keyUnwrapFailed), deviceProof(1)]).decisions[0]
    #expect(damaged.outcome == .unreadable(.tagMismatch))
    #expect(damaged.detail == "the item's bytes were changed; 312 bytes at 7,994")
  }

  @Test("A key that unwraps one class proves nothing for another class")
  func divided() {
    let otherClass = failed(0, .keyUnwrapFailed, protection: .alwaysThisDeviceOnly)
    let plan = plan([otherClass, deviceProof(1), failed(2, .keyUnwrapFailed)])
    #expect(plan.isSameDevice == nil)
    #expect(
      plan.decisions.map(\.outcome) == [.staysBehind(.deviceBound), .migrates(.new), .unreadable(.tagMismatch)])
    #expect(
      plan.decisions[0].detail == """
        this device's key decrypts other items, but none of this item's class. Either the item's key needs \
        another device's key, or the item is damaged; Keyhaul cannot tell which; 312 bytes at 7,994
        """)
    #expect(
      self.plan([otherClass, deviceProof(1, protection: .alwaysThisDeviceOnly)]).decisions[0].outcome
        == .unreadable(.tagMismatch))
  }

  @Test("All items are evidence, even if only some are selected")
  func only() {
    let items = [failed(0, .keyUnwrapFailed), deviceProof(1)] + [failed(2, .keyUnwrapFailed, protection: .always)]
    let selection = plan(items, only: [0])
    // No item of the third item's class can be decrypted.
    #expect(selection.isSameDevice == nil)
    #expect(selection.decisions.map(\.outcome) == [.unreadable(.tagMismatch)])
    #expect(selection.decisions.map(\.index) == [0])
    #expect(plan(items, only: []).decisions.isEmpty)
    #expect(plan(items, only: [7]).decisions.isEmpty)
  }

  @Test("The reason why a migratable item needs a device key depends on whether the backup has a password")
  func migratable() {
    let item = failed(0, .keyUnwrapFailed, protection: .whenUnlocked)
    #expect(plan([item], hasPassword: false).decisions[0].outcome == .staysBehind(.backupNotEncrypted))
    #expect(plan([item], hasPassword: true).decisions[0].outcome == .staysBehind(.deviceBound))
    let missing = failed(0, .hardwareMissing, protection: .always, classKey: .deviceBound)
    #expect(plan([missing], hasPassword: false).decisions[0].outcome == .staysBehind(.backupNotEncrypted))
  }

  @Test(
    "An item that cannot be read for another reason is damaged",
    arguments: [
      (BackupItem.Failure.noClassKey(.always), Reason.noClassKey), (.classKeyDamaged(.always), .noClassKey),
      (.tagMismatch, .tagMismatch), (.malformed("x"), .malformed), (.missingData, .malformed),
      (.unsupportedVersion(8), .unsupportedVersion),
    ])
  func failures(_ failure: BackupItem.Failure, _ reason: Reason) {
    let decision = plan([failed(0, failure, protection: .always, classKey: .available)]).decisions[0]
    #expect(decision.outcome == .unreadable(reason))
    #expect(decision.detail?.isEmpty == false)
    #expect(reason.isDamage)
  }

  @Test("The summary counts the decisions")
  func summary() {
    let items =
      decryptedItems([.password("a"), .password("b"), .password("a")]) + [failed(3, .keyUnwrapFailed)]
      + [failed(4, .tagMismatch, protection: .always, classKey: .available), failed(5, .keyUnwrapFailed)]
    let summary = plan(items).summary
    #expect(summary.total == 6)
    #expect(summary.migrates == 3)
    #expect(summary.staysBehind == 2)
    #expect(summary.unreadable == 1)
    #expect(summary.byReason == [.deviceBound: 2, .tagMismatch: 1])
    #expect(summary.byChange == [.new: 2, .identical: 1])
  }
}
