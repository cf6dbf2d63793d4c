/// The files of a backup that have a name of their own.
package enum StoredPart: CaseIterable {
  case manifest, status, info, database, keychain
  /// `Manifest.db-wal` and `Manifest.db-journal`, which SQLite keeps beside a database.
  case databaseLog, databaseJournal
  /// `Manifest.mbdb`, of iOS 9 and earlier, and the keychain file as it lies beside it.
  case oldDatabase, oldKeychain
  /// `Keyhaul.seal`, which this program adds and no device writes.
  case seal

  /// SHA-1 of `KeychainDomain-keychain-backup.plist`; the same in every backup, published with every reader of them.
  package static let keychainFileIdentifier = "51a4616e576dd33cd2abadfea874eb8ff246bf0e"

  /// Relative to the backup's directory.
  package var path: String {
    switch self {
    case .manifest: "Manifest.plist"
    case .status: "Status.plist"
    case .info: "Info.plist"
    case .database: "Manifest.db"
    case .databaseLog: "Manifest.db-wal"
    case .databaseJournal: "Manifest.db-journal"
    case .keychain: BackupLayout.manifestDB.storedPath(of: Self.keychainFileIdentifier)
    case .oldDatabase: "Manifest.mbdb"
    case .oldKeychain: BackupLayout.mbdb.storedPath(of: Self.keychainFileIdentifier)
    case .seal: "Keyhaul.seal"
    }
  }

  /// Whether it may be larger than what is worth holding in memory.
  package var isLarge: Bool { isJournal || [.database, .keychain, .oldKeychain].contains(self) }
  /// Whether it holds changes to the list of files that the list itself may not have.
  package var isJournal: Bool { Self.journals.contains(self) }

  package static let journals: [StoredPart] = [.databaseLog, .databaseJournal]

  package func limit(_ limits: ArchiveLimits) -> Int {
    switch self {
    case .manifest, .status, .info: limits.propertyListByteCount
    case .database: limits.databaseByteCount
    case .databaseLog, .databaseJournal: limits.journalByteCount
    case .keychain, .oldKeychain: limits.keychainByteCount
    case .oldDatabase: limits.oldDatabaseByteCount
    case .seal: limits.sealByteCount
    }
  }
}
