/// How a backup's directory is laid out: what its list of files is, and where the payloads lie.
public enum BackupLayout: String, Sendable, Hashable, CaseIterable {
  /// `Manifest.db`, payloads in 256 directories named after their first two digits. iOS 10 and later.
  case manifestDB = "manifest-db"
  /// `Manifest.mbdb`, payloads beside it. iOS 4 to 9.
  case mbdb

  /// The stored list of files.
  package var listPart: StoredPart {
    switch self {
    case .manifestDB: .database
    case .mbdb: .oldDatabase
    }
  }

  /// What SQLite keeps beside the list of files.
  package var journals: [StoredPart] { self == .manifestDB ? StoredPart.journals : [] }

  /// The stored keychain file.
  package var keychainPart: StoredPart {
    switch self {
    case .manifestDB: .keychain
    case .mbdb: .oldKeychain
    }
  }

  /// The one that this is not.
  package var other: BackupLayout { self == .mbdb ? .manifestDB : .mbdb }

  /// Where a payload lies, relative to the backup's directory.
  package func storedPath(of fileIdentifier: String) -> String {
    switch self {
    case .manifestDB: "\(fileIdentifier.prefix(2))/\(fileIdentifier)"
    case .mbdb: fileIdentifier
    }
  }
}

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

/// What a file of a backup is by its path in the backup's directory.
package enum BackupPath {
  /// Files with a name of their own, of every layout.
  package static let parts = [
    "Manifest.plist", "Status.plist", "Info.plist", "Manifest.db", "Manifest.db-wal", "Manifest.db-journal",
    "Manifest.mbdb", "Manifest.mbdx",
    "Keyhaul.seal",
  ]

  /// Whether it belongs to a backup: a part, or a payload of the current layout or of that before iOS 10.
  package static func isOwn(_ components: some BidirectionalCollection<Substring>) -> Bool {
    guard let last = components.last else { return false }
    return components.count == 1 && parts.contains(String(last)) || payload(at: components) != nil
  }

  /// The identifier of the payload that a path names, in a directory named after its first two digits or in none. File
  /// systems and tools fold names, so that capitals count for nothing.
  ///
  /// - Returns: `nil` for a path that names no payload.
  static func payload(at components: some BidirectionalCollection<some StringProtocol>) -> String? {
    guard let last = components.last, last.utf8.count == 40 else { return nil }
    let identifier = isFileIdentifier(last) ? String(last) : last.lowercased()
    guard isFileIdentifier(identifier) else { return nil }
    switch components.count {
    case 1: return identifier
    case 2: return components.first.map { $0.lowercased() } == String(identifier.prefix(2)) ? identifier : nil
    default: return nil
    }
  }

  /// The same of a path in the backup's directory.
  package static func payload(at path: String) -> String? { payload(at: path.split(separator: "/")) }

  /// Whether payloads of the current layout lie in a directory of this name: the first two digits of their identifiers,
  /// capitals too.
  package static func isPayloadDirectory(_ name: String) -> Bool {
    name.utf8.count == 2 && isFileIdentifier(name.lowercased() + String(repeating: "0", count: 38))
  }

  /// The path in the backup's directory, `nil` for what is not a file of the backup's.
  ///
  /// - Parameter directory: The one around the backup's files, empty for none.
  package static func inside(_ directory: EntryName, _ path: EntryPath) -> String? {
    let depth = directory.isEmpty ? 0 : directory.bytes.count { $0 == UInt8(ascii: "/") } + 1
    let own = path.components.dropFirst(depth)
    guard (1...2).contains(own.count), path.directory(around: own.count) == directory,
      own.allSatisfy({ $0.allSatisfy { $0 < 0x80 } })
    else { return nil }
    let texts = own.map { Substring(decoding: $0, as: UTF8.self) }
    return isOwn(texts) ? texts.joined(separator: "/") : nil
  }
}

/// Whether this is the name of a stored payload: forty lower-case hexadecimal digits.
package func isFileIdentifier(_ text: some StringProtocol) -> Bool {
  text.utf8.count == 40 && text.utf8.allSatisfy { (48...57).contains($0) || (97...102).contains($0) }
}
