package import Backups
import Basics
package import KeychainCrypto
package import KeychainFormats
import KeychainRules

/// A keychain sealed for a new keybag, ready to be written.
package struct PreparedBackup: Sendable {
  /// What is about to be written: the device, the keybag and the sealed keychain.
  package let contents: BackupContents
  /// What the backup takes along and what it leaves.
  package let report: ExportReport
  let keys: ClassKeys

  /// Writes it, whole or not at all.
  ///
  /// - Throws: What the writer reports: something stands there, no space, no permission.
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
      throw .making(error)
    }
  }
}

/// What a backup takes along and what it leaves on the device.
package struct ExportReport: Sendable {
  /// One item of the device.
  package struct Item: Sendable, Hashable {
    /// The names that it is known by; sealed where its row does not open.
    package let identity: ItemDescriptor
    /// The class that protects it; `nil` if the column has no known one.
    package let protection: ProtectionClass?
    /// Number of its row in the table of its kind.
    package let rowID: Int64
    /// Whether it is marked to synchronize; `nil` if its row does not open.
    package let isSynchronizable: Bool?
    /// Whether its value has the form of a key of the Secure Enclave; `nil` if its row does not open.
    package let containsSecureEnclaveKey: Bool?

    /// Returns the decision to leave the item on the device.
    func leftOut(because reason: Reason, _ detail: String? = nil) -> MigrationPlan.Decision {
      MigrationPlan.Decision(
        index: Int(rowID), identity: identity, protection: protection,
        outcome: reason.isDamage ? .unreadable(reason) : .staysBehind(reason), detail: detail,
        isSynchronizable: isSynchronizable, containsSecureEnclaveKey: containsSecureEnclaveKey)
    }

    /// The same with its names taken from an item that is held as long as this is.
    func sharing(_ item: KeychainItem) -> Item {
      Item(
        identity: .sharing(item), protection: protection, rowID: rowID,
        isSynchronizable: isSynchronizable, containsSecureEnclaveKey: containsSecureEnclaveKey)
    }
  }

  /// The items that are in the backup, by their positions in it; none where they were not to be listed.
  package internal(set) var exported: [Item] = []
  /// How many items are in the backup.
  package internal(set) var exportedCount = 0
  /// The decisions about the rows that stay on the device, including tombstones. Their positions are the numbers of the
  /// rows.
  package internal(set) var leftOut: [MigrationPlan.Decision] = []

  /// Items that stay on the device; a deleted item's mark is none to miss.
  package var missing: [MigrationPlan.Decision] { leftOut.filter { $0.outcome.reason != .deleted } }
  /// Marks of deleted items that stay on the device, counted apart everywhere.
  package var tombstones: [MigrationPlan.Decision] { leftOut.filter { $0.outcome.reason == .deleted } }
  /// Items of the device, tombstones that stay at home apart.
  package var total: Int { exportedCount + missing.count }
}
