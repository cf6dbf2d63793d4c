import KeyhaulKit
import Reports

/// The items of a Simulator's keychain that is changed.
struct SimulatorItems: EditableItems {
  let items: ListedItems
  private let simulator: FoundSimulator
  /// Of marks of deleted items, which make room for new ones.
  private let deleted: Set<PrimaryKey>

  /// - Throws: `.refused` for a dump.
  init(_ found: FoundDump) throws(CommandFailure) {
    simulator = try FoundSimulator(found)
    items = ListedItems(found)
    deleted = Set(found.dump.items.compactMap(\.item).filter(\.isTombstone).compactMap { try? PrimaryKey(of: $0) })
  }

  func reach(of item: KeychainItem) -> String { "unencrypted, as a Simulator stores it" }

  var note: String? { SimulatorNote.untried }

  func perform(
    _ edit: ItemEdit, isRehearsed: Bool, _ done: DoneChange, in session: Session
  ) throws(CommandFailure) -> [(row: ItemRow, index: Int?)] {
    let environment = DeviceEnvironment.interruptible
    let (now, random) = (environment.clock.now(), environment.random)
    return try simulator.change(done, isRehearsed: isRehearsed, in: session) {
      (keychain) throws(KeychainDatabaseError) in
      switch edit {
      case .add(let item):
        let prepared = try Self.byRule { () throws(KeychainRuleError) in
          try NewItem.prepared(item, now: now, random: random)
        }
        let isDeleted = (try? PrimaryKey(of: prepared)).map(deleted.contains) ?? false
        guard try keychain.put(prepared, replacing: isDeleted) != .kept else {
          throw KeychainDatabaseError(.duplicate, "a \(item.kind.reportName) with the same primary key exists")
        }
        return [(ItemRow(prepared, at: RowReference(kind: item.kind, rowID: 0)), nil)]
      case .update(let rows, let changes):
        var changed: [(row: ItemRow, index: Int?)] = []
        for row in rows {
          guard let old = row.item else { continue }
          let new = try Self.byRule { () throws(KeychainRuleError) in try changes.applied(to: old, now: now) }
          try keychain.replace(row: row.reference.rowID, with: new)
          changed.append((ItemRow(new, at: row.reference), items.indexes[row.reference]))
        }
        return changed
      case .delete(let rows):
        for row in rows { try keychain.remove(row: row.reference.rowID, of: row.kind) }
        return []
      }
    }
  }

  private static func byRule<Value>(
    _ body: () throws(KeychainRuleError) -> Value
  ) throws(KeychainDatabaseError) -> Value {
    do throws(KeychainRuleError) { return try body() } catch { throw KeychainDatabaseError(.malformed, error.reason) }
  }
}
