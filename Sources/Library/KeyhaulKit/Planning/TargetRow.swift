public import Backups
import Basics
public import KeychainFormats
public import KeychainRules
public import Keychains

/// One row of the target's keychain as the planner sees it.
public struct TargetRow: Sendable {
  /// What an item of the archive collides with it by.
  public let primaryKey: PrimaryKey
  /// The names that the row's item is known by; sealed where it does not open.
  public let identity: ItemIdentity
  /// What the decision about a conflict needs of the row.
  public let existing: ExistingRow
  /// The opened item; `nil` where the row is locked or damaged.
  public let item: KeychainItem?
  /// `replace` removes the row before it imports anything.
  public let isRemovedByReplace: Bool
  /// Put back after `replace` has removed it.
  public let isSystemBound: Bool
  /// A deleted item's mark, damaged or not: no item to lose or to replace.
  public let isTombstone: Bool

  /// Creates a row, as tests do that plan without a database.
  public init(
    primaryKey: PrimaryKey, identity: ItemIdentity, existing: ExistingRow, item: KeychainItem?,
    isRemovedByReplace: Bool, isSystemBound: Bool, isTombstone: Bool = false
  ) {
    self.primaryKey = primaryKey
    self.identity = identity
    self.existing = existing
    self.item = item
    self.isRemovedByReplace = isRemovedByReplace
    self.isSystemBound = isSystemBound
    self.isTombstone = isTombstone
  }

  /// Creates what the planner sees of a row.
  ///
  /// - Parameters:
  ///   - row: A row as the store gives it. A locked one is judged by its columns, which are not authenticated; a plan
  ///     may be made of it, a restore asks for the device to be unlocked.
  ///   - onSharedIPad: Whether the device is a Shared iPad, which has more system-bound items.
  /// - Throws: `.notAvailable` where a digest cannot be computed.
  public init(_ row: KeychainRow, onSharedIPad: Bool = false) throws(KeychainStoreError) {
    let summary = row.summary
    let existing: ExistingRow
    if let fault = row.fault, !fault.isPermanent {
      existing = ExistingRow(
        state: summary.isTombstone
          ? .tombstone(uuid: summary.uuid, persistentReference: summary.persistentReference)
          : .item(modificationDate: summary.modificationDate, digest: summary.digest ?? []))
    } else {
      existing = try ExistingRow(row)
    }
    self.init(
      primaryKey: summary.primaryKey,
      identity: row.item.map(ItemIdentity.sharing)
        ?? ItemIdentity(sealed: summary.kind, accessGroup: summary.accessGroup),
      existing: existing, item: row.item, isRemovedByReplace: summary.isRemovedByRestore,
      isSystemBound: summary.multiUser.isEmpty
        && row.item.map { SystemBoundItems.contain($0, onSharedIPad: onSharedIPad) }
          ?? (row.fault?.isPermanent == false && SystemBoundItems.groups.contains(summary.accessGroup)),
      isTombstone: row.item?.isTombstone ?? summary.isTombstone)
  }
}
