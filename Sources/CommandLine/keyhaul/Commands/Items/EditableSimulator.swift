import KeyhaulKit
import Reports

/// The keychain of a Simulator.
struct EditableSimulator: RewrittenKeychain {
  let items: SearchableItems
  let selection: ItemSelection
  private let simulator: ResolvedSimulator
  /// The primary keys of tombstones, which a new item replaces.
  private let deletedKeys: Set<PrimaryKey>

  /// Opens a Simulator's keychain for a change.
  ///
  /// - Throws: `.refused` for a dump.
  init(_ database: ResolvedDump, _ selection: ItemSelection) throws(CommandError) {
    self.selection = selection
    simulator = try ResolvedSimulator(database)
    items = SearchableItems(database)
    deletedKeys = Set(
      database.dump.items.compactMap(\.item).filter(\.isTombstone).compactMap { try? PrimaryKey(of: $0) })
  }

  func portability(of item: KeychainItem) -> String { "unencrypted, as a Simulator stores it" }

  func removeLeftovers() {}

  func apply(
    _ edit: ItemEdit, isDryRun: Bool, _ change: CommittedChange, in session: Session
  ) throws(CommandError) -> [KeychainEntry] {
    let environment = DeviceEnvironment.interruptible
    let (now, random) = (environment.clock.now(), environment.random)
    return try simulator.change(change, isDryRun: isDryRun, in: session) {
      (keychain) throws(KeyhaulError) in
      switch edit {
      case .add(let item):
        let prepared = try Self.translatingRuleErrors { () throws(KeychainRuleError) in
          try NewItemDefaults.prepared(item, now: now, random: random)
        }
        let isDeleted = (try? PrimaryKey(of: prepared)).map(deletedKeys.contains) ?? false
        guard try keychain.insert(prepared, replacingExisting: isDeleted) != .kept else {
          throw KeyhaulError(.databaseDuplicate, "another \(item.kind.reportName) has the same primary key")
        }
        return [KeychainEntry(index: nil, item: prepared)]
      case .update(let rows, let changes):
        var changed: [KeychainEntry] = []
        for row in rows {
          guard let old = row.item else { continue }
          let new = try Self.translatingRuleErrors { () throws(KeychainRuleError) in
            try changes.applied(to: old, now: now)
          }
          try keychain.replace(row: row.rowReference.rowID, with: new)
          changed.append(KeychainEntry(new, at: row.rowReference, index: row.index))
        }
        return changed
      case .delete(let rows):
        for row in rows { try keychain.remove(row: row.rowReference.rowID, of: row.kind) }
        return []
      }
    }
  }

  private static func translatingRuleErrors<Value>(
    _ body: () throws(KeychainRuleError) -> Value
  ) throws(KeyhaulError) -> Value {
    try converting({ KeyhaulError.unstorableItem($0.reason) }, body)
  }
}
