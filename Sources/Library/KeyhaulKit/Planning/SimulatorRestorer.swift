package import Backups
import Basics
package import KeychainCrypto
import KeychainFormats
package import KeychainRules
package import Keychains

/// Makes plans for a Simulator's keychain and carries them out: by the rules of a device that is none of those that could
/// have made the backup.
package enum SimulatorRestorer {
  /// What the planner sees of a database's rows.
  ///
  /// - Throws: What makes an item none that a keychain holds.
  package static func rows(
    of rows: [KeychainDatabase.OpenedRow]
  ) throws(KeychainRuleError) -> [TargetRow] {
    var result: [TargetRow] = []
    for row in rows { result.append(try TargetRow(row)) }
    return result
  }

  /// Decides what restoring a backup would do. Changes nothing.
  ///
  /// - Parameters:
  ///   - archive: The backup, opened without any hardware key.
  ///   - rows: Of the Simulator.
  ///   - policy: What happens to the Simulator's own items before anything is imported.
  ///   - indexes: Only these items of the archive, by their position; `nil` for all.
  package static func plan(
    _ archive: OpenedArchive, onto rows: [TargetRow], policy: ExistingItemPolicy, only indexes: Set<Int>? = nil
  ) -> MigrationPlan {
    MigrationPlanner.plan(
      archive.items, only: indexes, onto: rows, policy: policy,
      surroundings: RestoreSurroundings(targetSyncs: false, backupHasPassword: archive.hasPassword))
  }

  /// Carries out a plan within the transaction of a Simulator's keychain: exactly what it says, or an error.
  ///
  /// - Parameter rows: Those that the plan was made for, with their numbers.
  package static func restore(
    _ plan: MigrationPlan, onto rows: [KeychainDatabase.OpenedRow], in keychain: SimulatorKeychain,
    random: any RandomSource = SystemRandomSource()
  ) throws(KeychainDatabaseError) {
    guard plan.holdsImports else { throw unforeseen("this plan was made for display only") }
    var present: [PrimaryKey: Present] = [:]
    var cleared = 0
    for row in rows {
      let target = try byRule { () throws(KeychainRuleError) in try TargetRow(row) }
      guard !(plan.policy == .replace && target.isRemovedByReplace) else {
        try keychain.remove(row: row.row.number, of: row.row.kind)
        cleared += 1
        continue
      }
      present[target.primaryKey] = Present(row: row.row.number, existing: target.existing, item: target.item)
    }
    guard cleared == plan.clearedRowCount else { throw unforeseen("\(cleared) rows would be removed") }
    for planned in plan.imports {
      let incoming = try incoming(planned, of: plan)
      let (key, item) = try byRule { () throws(KeychainRuleError) in
        (try PrimaryKey(of: incoming.item), try complete(incoming.item, random))
      }
      let met = present[key]
      let resolution = try byRule { () throws(KeychainRuleError) in
        try ImportConflict.resolve(incoming: incoming, existing: met?.existing)
      }
      guard resolution.outcome == planned.outcome else { throw unforeseen(plan.difference(at: planned)) }
      let isTaken = resolution.outcome == .insertsNew || resolution.outcome.isReplacement
      guard
        let winner = isTaken
          ? resolution.storedItem(incoming: item, existing: met?.item)
          : resolution.keptItem(incoming: incoming, existing: met?.item)
      else { continue }
      if let row = met?.row {
        try keychain.replace(row: row, with: winner)
      } else {
        _ = try keychain.put(winner, replacing: true)
      }
      let existing = try byRule { () throws(KeychainRuleError) in try ExistingRow(storing: winner) }
      present[key] = Present(row: met?.row, existing: existing, item: winner)
    }
  }

  private struct Present {
    /// `nil` of an item that came in this restore.
    let row: Int64?
    let existing: ExistingRow
    let item: KeychainItem?
  }

  private static func complete(
    _ item: KeychainItem, _ random: any RandomSource
  ) throws(KeychainRuleError) -> KeychainItem {
    var item = item
    if item[.uuid]?.stringValue == nil { item[.uuid] = .string(try NewItem.randomUUIDText(random)) }
    if item[.persistentReference] == nil {
      item[.persistentReference] = .data(try NewItem.randomBytes(random, count: 16))
    }
    return item
  }

  private static func incoming(
    _ planned: MigrationPlan.PlannedImport, of plan: MigrationPlan
  ) throws(KeychainDatabaseError) -> IncomingItem {
    do throws(MigrationError) {
      return try plan.incoming(planned)
    } catch {
      throw KeychainDatabaseError(.failed, error.reason)
    }
  }

  private static func unforeseen(_ reason: String) -> KeychainDatabaseError {
    KeychainDatabaseError(.failed, "the restore would not match the plan: \(reason)")
  }

  private static func byRule<Value>(
    _ body: () throws(KeychainRuleError) -> Value
  ) throws(KeychainDatabaseError) -> Value {
    do throws(KeychainRuleError) { return try body() } catch { throw KeychainDatabaseError(.malformed, error.reason) }
  }
}

extension TargetRow {
  /// A row of a Simulator's database; one that does not open is damaged, as nothing ever opens it.
  fileprivate init(_ row: KeychainDatabase.OpenedRow) throws(KeychainRuleError) {
    var columns = row.row.columns
    // A schema without the column has no shared copies.
    if columns[.sharingGroup] == nil { columns[.sharingGroup] = .text([]) }
    let kind = row.row.kind
    let item = row.opened.isOpen ? row.opened.item : nil
    let key: PrimaryKey
    if let item {
      key = try PrimaryKey(of: item)
    } else {
      key = PrimaryKey(
        kind: kind, columns: ColumnDefinitions.primaryKey(of: kind).map { columns[$0.code] ?? .null })
    }
    self.init(
      primaryKey: key, identity: item.map(ItemIdentity.init) ?? ItemIdentity(sealed: kind),
      existing: try item.map { item throws(KeychainRuleError) in try ExistingRow(storing: item) }
        ?? ExistingRow(state: .corrupt),
      item: item, isRemovedByReplace: RestoreRemoval.removes(columns),
      isSystemBound: item.map { SystemBoundItems.contain($0) } ?? false, isTombstone: item?.isTombstone ?? false)
  }
}
