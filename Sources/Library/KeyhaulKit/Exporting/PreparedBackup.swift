package import Backups
import Basics
package import KeychainCrypto
package import KeychainFormats
import KeychainRules

/// An encrypted keychain with its keybag, ready to be written.
package struct PreparedBackup: Sendable {
  /// The content of the backup: the device, the keybag and the encrypted keychain.
  package let contents: BackupContents
  /// The items that were exported, and the items that were left out.
  package let report: ExportReport
  /// The class keys of the keybag.
  let keys: ClassKeys

  /// Writes the backup completely or not at all.
  ///
  /// - Throws: An error of the writer: the destination exists, no space, no permission.
  package func write(
    to destination: BackupDestination, replace: Bool = false, random: some RandomSource = SystemRandomSource()
  ) throws(KeyhaulError) -> WrittenBackup {
    try write(with: BackupWriter(), to: destination, replace: replace, random: random)
  }

  package func write(
    with writer: BackupWriter, to destination: BackupDestination, replace: Bool,
    random: some RandomSource = SystemRandomSource()
  ) throws(KeyhaulError) -> WrittenBackup {
    do throws(KeyhaulError) {
      return try writer.write(contents, keys: keys, random: random, to: destination, replace: replace)
    } catch {
      throw .advisingTemporaryFolder(for: error)
    }
  }
}

/// The items of a device that were exported, and the items that were left out and stay only on the device.
package struct ExportReport: Sendable {
  /// An item of the device.
  package struct Item: Sendable, Hashable {
    /// The item's names, which are unknown if the row cannot be decrypted.
    package let identity: ItemDescriptor
    /// The protection class; `nil` if the column contains no known class.
    package let protection: ProtectionClass?
    /// The number of the row in its table.
    package let rowID: Int64
    /// Whether the item synchronizes; `nil` if the row cannot be decrypted.
    package let isSynchronizable: Bool?
    /// Whether the value has the form of a Secure Enclave key; `nil` if the row cannot be decrypted.
    package let containsSecureEnclaveKey: Bool?

    /// Returns the decision to leave the item out.
    func omission(because reason: Reason, _ detail: String? = nil) -> MigrationPlan.Decision {
      MigrationPlan.Decision(
        index: Int(rowID), identity: identity, protection: protection,
        outcome: reason.isDamage ? .unreadable(reason) : .staysBehind(reason), detail: detail,
        isSynchronizable: isSynchronizable, containsSecureEnclaveKey: containsSecureEnclaveKey)
    }

    /// Returns a copy that uses the name strings of `item`, to save memory.
    func sharing(_ item: KeychainItem) -> Item {
      Item(
        identity: .sharing(item), protection: protection, rowID: rowID,
        isSynchronizable: isSynchronizable, containsSecureEnclaveKey: containsSecureEnclaveKey)
    }
  }

  /// The items in the backup by index; empty if they were not listed.
  package internal(set) var exported: [Item] = []
  /// The number of items in the backup.
  package internal(set) var exportedCount = 0
  /// The decisions about the rows that were left out, including tombstones. The `index` of each decision is the row's
  /// number.
  package internal(set) var omissions: [MigrationPlan.Decision] = []

  /// The items that were left out, without tombstones.
  package var omittedItems: [MigrationPlan.Decision] { omissions.filter { $0.outcome.reason != .deleted } }
  /// The tombstones that were left out, which are counted separately.
  package var tombstones: [MigrationPlan.Decision] { omissions.filter { $0.outcome.reason == .deleted } }
  /// The number of items on the device, without the tombstones that were left out.
  package var total: Int { exportedCount + omittedItems.count }
}
