import KeyhaulKit
import Reports

/// The keychain of a Simulator.
struct EditableSimulator: RewrittenKeychain {
  let items: SearchableItems
  let selection: ItemSelection
  private let simulator: ResolvedSimulator
  /// The primary keys of the tombstones. A new or changed item may replace a tombstone.
  private let tombstoneKeys: Set<PrimaryKey>

  /// Opens a Simulator's keychain for a change.
  ///
  /// - Throws: `.refused` if the file is another tool's dump, not a Simulator's database.
  init(_ database: ResolvedDump, _ selection: ItemSelection) throws(CommandError) {
    self.selection = selection
    simulator = try ResolvedSimulator(database)
    items = SearchableItems(database)
    tombstoneKeys = Set(
      database.contents.items.compactMap(\.item).filter(\.isTombstone).compactMap { try? PrimaryKey(of: $0) })
  }

  func portability(of item: KeychainItem) -> String { "unencrypted, as a Simulator stores it" }

  /// A killed command leaves no copies, because SQLite changes the database in place.
  func removeLeftovers() {}

  func apply(
    _ edit: ItemEdit, isDryRun: Bool, _ committedChange: CommittedChange, in session: Session
  ) throws(CommandError) -> [KeychainEntry] {
    let environment = DeviceEnvironment.interruptible
    let (now, random) = (environment.clock.now(), environment.random)
    return try simulator.change(committedChange, isDryRun: isDryRun, in: session) {
      (keychain) throws(KeyhaulError) in
      switch edit {
      case .add(let item):
        let preparedItem = try Self.translatingRuleErrors { () throws(KeychainRuleError) in
          try NewItemDefaults.prepared(item, now: now, random: random)
        }
        try insert(preparedItem, into: keychain)
        return [KeychainEntry(index: nil, item: preparedItem)]
      case .update(let entries, let changes):
        return try update(entries, of: keychain, with: changes, now: now)
      case .delete(let entries):
        for entry in entries { try keychain.remove(row: entry.rowReference.rowID, of: entry.kind) }
        return []
      }
    }
  }

  /// Inserts an item. It may replace a tombstone, but not another item.
  private func insert(_ item: KeychainItem, into keychain: SimulatorKeychain) throws(KeyhaulError) {
    let replacesTombstone = (try? PrimaryKey(of: item)).map(tombstoneKeys.contains) ?? false
    guard try keychain.insert(item, replacingExisting: replacesTombstone) != .kept else {
      throw KeyhaulError(.databaseDuplicate, "another \(item.kind.reportName) has the same primary key")
    }
  }

  /// Changes entries, and returns them with their new values. A changed item may replace a tombstone, but not another
  /// item.
  private func update(
    _ entries: [KeychainEntry], of keychain: SimulatorKeychain, with changes: ItemChanges, now: KeychainDate
  ) throws(KeyhaulError) -> [KeychainEntry] {
    var changedEntries: [KeychainEntry] = []
    var tombstoneKeys = tombstoneKeys
    for entry in entries {
      guard let currentItem = entry.item else { continue }
      let changedItem = try Self.translatingRuleErrors { () throws(KeychainRuleError) in
        try changes.applied(to: currentItem, now: now)
      }
      let replacesTombstone = (try? PrimaryKey(of: changedItem)).map { tombstoneKeys.remove($0) != nil } ?? false
      try keychain.replace(
        row: entry.rowReference.rowID, with: changedItem, removingExisting: replacesTombstone)
      changedEntries.append(KeychainEntry(changedItem, at: entry.rowReference, index: entry.index))
    }
    return changedEntries
  }

  private static func translatingRuleErrors<Value>(
    _ body: () throws(KeychainRuleError) -> Value
  ) throws(KeyhaulError) -> Value {
    try converting({ KeyhaulError.unstorableItem($0.reason) }, body)
  }
}
