/// The files of a backup that this module reads, as they are stored: encrypted ones still encrypted.
struct StoredParts: Sendable {
  private var small: [StoredPart: [UInt8]] = [:]
  /// `Manifest.db`, which may be larger than memory.
  var database: StoredBytes?
  /// What is there and was not read.
  var unreadable: [UnreadablePaper] = []

  subscript(part: StoredPart) -> [UInt8]? {
    get { small[part] }
    set { small[part] = newValue }
  }

  func contains(_ part: StoredPart) -> Bool { part == .database ? database != nil : small[part] != nil }

  /// What the list of files says that the backup is; `nil` where it has none.
  var layout: BackupLayout? { BackupLayout.allCases.first { contains($0.listPart) } }

  /// Forgets what belongs to another layout: a device that was updated may have left its old list behind.
  func only(_ layout: BackupLayout) -> StoredParts {
    var parts = self
    for other in BackupLayout.allCases where other != layout {
      parts[other.listPart] = nil
      parts[other.keychainPart] = nil
    }
    return parts
  }
}

/// The files of a backup that have a name of their own.
enum StoredPart: CaseIterable {
  case manifest, status, info, database, keychain
  /// `Manifest.mbdb`, of iOS 9 and earlier, and the keychain file as it lies beside it.
  case oldDatabase, oldKeychain

  /// Relative to the backup's folder.
  var path: String {
    switch self {
    case .manifest: "Manifest.plist"
    case .status: "Status.plist"
    case .info: "Info.plist"
    case .database: "Manifest.db"
    case .keychain: BackupLayout.manifestDB.storedPath(of: KeychainPayload.fileIdentifier)
    case .oldDatabase: "Manifest.mbdb"
    case .oldKeychain: BackupLayout.mbdb.storedPath(of: KeychainPayload.fileIdentifier)
    }
  }

  func limit(_ limits: ArchiveLimits) -> Int {
    switch self {
    case .manifest, .status, .info: limits.propertyListByteCount
    case .database: limits.databaseByteCount
    case .keychain, .oldKeychain: limits.keychainByteCount
    case .oldDatabase: limits.oldDatabaseByteCount
    }
  }
}
