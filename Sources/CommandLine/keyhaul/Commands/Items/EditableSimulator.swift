import KeyhaulKit
import Reports

/// The keychain of a Simulator.
struct EditableSimulator: PreloadedKeychain {
  let items: SearchableItems
  let selection: ItemSelection
  private let simulator: ResolvedSimulator
  /// The tombstones and their row numbers. A new or changed item replaces the tombstone that has its primary key.
  private let tombstones: [PrimaryKey: (rowID: Int64, item: KeychainItem)]

  /// Opens a Simulator's keychain for a change.
  ///
  /// - Throws: `.refused` if the dump is not a Simulator's database.
  init(_ dump: ResolvedDump, _ selection: ItemSelection) throws(CommandError) {
    self.selection = selection
    simulator = try ResolvedSimulator(dump)
    items = SearchableItems(dump)
    var tombstones: [PrimaryKey: (rowID: Int64, item: KeychainItem)] = [:]
    for dumpedItem in dump.contents.items {
      guard let item = dumpedItem.item, item.isTombstone, let key = try? PrimaryKey(of: item) else { continue }
      tombstones[key] = (rowID: simulator.rows[dumpedItem.entryPosition].row.number, item: item)
    }
    self.tombstones = tombstones
  }

  func remark(about item: KeychainItem) -> String { "unencrypted, as a Simulator stores it" }

  /// Does nothing. A killed command leaves no copies, because SQLite changes the database in place.
  func removeLeftovers() {}

  func apply(
    _ edit: ItemEdit, isDryRun: Bool, reportedAs change: CommittedChange, in session: Session
  ) throws(CommandError) -> [KeychainEntry] {
    let environment = DeviceEnvironment.interruptible
    let (now, random) = (environment.clock.now(), environment.random)
    return try simulator.change(change, isDryRun: isDryRun, in: session) {
      (keychain) throws(KeyhaulError) in
      switch edit {
      case .add(let item):
        let preparedItem = try Self.translatingRuleErrors { () throws(KeychainRuleError) in
          try NewItemDefaults.prepared(item, now: now, random: random)
        }
        return [KeychainEntry(index: nil, item: try insert(preparedItem, into: keychain))]
      case .update(let entries, let changes):
        return try update(entries, of: keychain, with: changes, now: now)
      case .delete(let entries):
        for entry in entries { try keychain.remove(row: entry.rowReference.rowID, of: entry.kind) }
        return []
      }
    }
  }

  /// Inserts an item, and returns it as it is stored.
  ///
  /// An item that replaces a tombstone gets the tombstone's UUID and persistent reference, as on a device.
  private func insert(_ item: KeychainItem, into keychain: SimulatorKeychain) throws(KeyhaulError) -> KeychainItem {
    if let key = try? PrimaryKey(of: item), let tombstone = tombstones[key] {
      var revivedItem = item
      revivedItem.copyIdentifiers(from: tombstone.item)
      try keychain.replace(row: tombstone.rowID, with: revivedItem)
      return revivedItem
    }
    guard try keychain.insert(item, replacingExisting: false) != .kept else {
      throw KeyhaulError(.databaseDuplicate, "another \(item.kind.reportName) has the same primary key")
    }
    return item
  }

  /// Changes entries, and returns them with their new values. Deletes a tombstone that has the new primary
  /// key of an item.
  private func update(
    _ entries: [KeychainEntry], of keychain: SimulatorKeychain, with changes: ItemChanges, now: KeychainDate
  ) throws(KeyhaulError) -> [KeychainEntry] {
    var remainingTombstones = tombstones
    var changedEntries: [KeychainEntry] = []
    for entry in entries {
      // An item that cannot be decrypted stays unchanged.
      guard let currentItem = entry.item else { continue }
      let changedItem = try Self.translatingRuleErrors { () throws(KeychainRuleError) in
        try changes.applied(to: currentItem, now: now)
      }
      if let key = try? PrimaryKey(of: changedItem), let tombstone = remainingTombstones.removeValue(forKey: key),
        tombstone.rowID != entry.rowReference.rowID
      {
        try keychain.remove(row: tombstone.rowID, of: changedItem.kind)
      }
      try keychain.replace(row: entry.rowReference.rowID, with: changedItem)
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
