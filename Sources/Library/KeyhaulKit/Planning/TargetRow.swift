package import Backups
import Basics
package import KeychainFormats
package import KeychainRules
package import Keychains

/// A row of the target's keychain for the planner.
package struct TargetRow: Sendable {
  /// The primary key, which determines conflicts.
  package let primaryKey: PrimaryKey
  /// The item's names, which are unknown if the row cannot be decrypted.
  package let identity: ItemDescriptor
  /// The properties that decide a conflict.
  package let existing: ExistingRow
  /// The decrypted item; `nil` if the row's class key is not in memory, or the row is damaged.
  package let item: KeychainItem?
  /// Whether `replace` removes the row before the import.
  package let isRemovedByReplace: Bool
  /// Whether the row is added again after `replace` has removed it.
  package let isSystemBound: Bool
  /// Whether the row is a tombstone, damaged or not.
  package let isTombstone: Bool

  /// Creates a row from its properties.
  package init(
    primaryKey: PrimaryKey, identity: ItemDescriptor, existing: ExistingRow, item: KeychainItem?,
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

  /// Creates a row from a row of the store.
  ///
  /// - Parameters:
  ///   - row: A row of the store. If its class key is not in memory, the planner uses the columns, which are not
  ///     authenticated. That is enough for a plan; a restore requires an unlocked device.
  ///   - isSharedIPad: Whether the device is a Shared iPad, which has more system-bound items.
  /// - Throws: `.notAvailable` if a digest cannot be computed.
  package init(_ row: KeychainRow, isSharedIPad: Bool = false) throws(KeyhaulError) {
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
      identity: row.item.map(ItemDescriptor.sharing)
        ?? ItemDescriptor(undecryptable: summary.kind, accessGroup: summary.accessGroup),
      existing: existing, item: row.item, isRemovedByReplace: summary.isRemovedByRestore,
      isSystemBound: Self.isSystemBound(row, isSharedIPad: isSharedIPad),
      isTombstone: row.item?.isTombstone ?? summary.isTombstone)
  }

  /// Returns whether the system keeps a row. If the row's class key is not in memory, its access group decides.
  private static func isSystemBound(_ row: KeychainRow, isSharedIPad: Bool) -> Bool {
    guard row.summary.multiUser.isEmpty else { return false }
    if let item = row.item { return SystemBoundItems.contains(item, isSharedIPad: isSharedIPad) }
    let isLocked = row.fault?.isPermanent == false
    return isLocked && SystemBoundItems.groups.contains(row.summary.accessGroup)
  }
}
