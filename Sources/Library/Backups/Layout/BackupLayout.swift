/// The layout of a backup's directory: the format of its file list and the paths of its payloads.
public enum BackupLayout: String, Sendable, Hashable, CaseIterable {
  /// `Manifest.db`, with payloads in 256 directories, each named by its payloads' first two digits. iOS 10 and later.
  case manifestDB = "manifest-db"
  /// `Manifest.mbdb`, with payloads in the directory that contains it. iOS 4 to 9.
  case mbdb

  /// The stored file list.
  package var listPart: MetadataFile {
    switch self {
    case .manifestDB: .database
    case .mbdb: .oldDatabase
    }
  }

  /// The SQLite journals of the file list.
  package var journals: [MetadataFile] { self == .manifestDB ? MetadataFile.journals : [] }

  /// The stored keychain file.
  package var keychainPart: MetadataFile {
    switch self {
    case .manifestDB: .keychain
    case .mbdb: .oldKeychain
    }
  }

  /// The newer layout for the older one, and the older layout for the newer one.
  package var other: BackupLayout { self == .mbdb ? .manifestDB : .mbdb }

  /// Returns the path of a payload, relative to the backup's directory.
  package func storedPath(of fileIdentifier: String) -> String {
    switch self {
    case .manifestDB: "\(fileIdentifier.prefix(2))/\(fileIdentifier)"
    case .mbdb: fileIdentifier
    }
  }
}

/// The metadata files of a backup.
package enum MetadataFile: CaseIterable {
  case manifest, status, info, database, keychain
  /// `Manifest.db-wal` and `Manifest.db-journal`, the SQLite journals.
  case databaseLog, databaseJournal
  /// `Manifest.mbdb` of iOS 9 and earlier, and the keychain file in that layout.
  case oldDatabase, oldKeychain
  /// `Keyhaul.seal`, which Keyhaul adds.
  case seal

  /// The SHA-1 digest of `KeychainDomain-keychain-backup.plist`. It is the same in all backups.
  package static let keychainFileIdentifier = "51a4616e576dd33cd2abadfea874eb8ff246bf0e"

  /// The path relative to the backup's directory.
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

  /// Whether the file may be too large for memory.
  package var isLarge: Bool { isJournal || [.database, .keychain, .oldKeychain].contains(self) }
  /// Whether the file contains changes to the file list.
  package var isJournal: Bool { Self.journals.contains(self) }

  /// The SQLite journals of the file list.
  package static let journals: [MetadataFile] = [.databaseLog, .databaseJournal]

  /// Returns the maximum size in bytes.
  package func limit(_ limits: BackupLimits) -> Int {
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

/// Recognizes the files of a backup by their paths in its directory.
package enum BackupPath {
  /// The names of the metadata files of all layouts.
  package static let metadataFileNames = [
    "Manifest.plist", "Status.plist", "Info.plist", "Manifest.db", "Manifest.db-wal", "Manifest.db-journal",
    "Manifest.mbdb", "Manifest.mbdx",
    "Keyhaul.seal",
  ]

  /// Returns whether a path belongs to a backup: a metadata file, or a payload of either layout.
  package static func isBackupFile(_ components: some BidirectionalCollection<Substring>) -> Bool {
    guard let last = components.last else { return false }
    return components.count == 1 && metadataFileNames.contains(String(last)) || payload(at: components) != nil
  }

  /// Returns the identifier of the payload at a path of either layout. Ignores case, because file systems and tools
  /// change it.
  ///
  /// - Returns: The identifier, or `nil` if no payload has such a path.
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

  /// Returns the identifier of the payload with a path in the backup's directory.
  package static func payload(at path: String) -> String? { payload(at: path.split(separator: "/")) }

  /// Returns whether a directory with this name contains payloads in the newer layout. Its name is the first two digits
  /// of their identifiers, in upper or lower case.
  package static func isPayloadDirectory(_ name: String) -> Bool {
    name.utf8.count == 2 && isFileIdentifier(name.lowercased() + String(repeating: "0", count: 38))
  }

  /// Returns the path in the backup's directory, or `nil` if the entry is outside it or is not a backup file.
  ///
  /// - Parameter directory: The backup's directory in the container, empty if there is none.
  package static func inside(_ directory: EntryName, _ path: EntryPath) -> String? {
    let depth = directory.isEmpty ? 0 : directory.bytes.count { $0 == UInt8(ascii: "/") } + 1
    let components = path.components.dropFirst(depth)
    guard (1...2).contains(components.count), path.directory(around: components.count) == directory,
      components.allSatisfy({ $0.allSatisfy { $0 < 0x80 } })
    else { return nil }
    let names = components.map { Substring(decoding: $0, as: UTF8.self) }
    return isBackupFile(names) ? names.joined(separator: "/") : nil
  }
}

/// Returns whether a string is the name of a payload: 40 lower-case hexadecimal digits.
package func isFileIdentifier(_ string: some StringProtocol) -> Bool { isFileIdentifier(utf8: string.utf8) }

/// Returns whether bytes are the name of a payload.
func isFileIdentifier(utf8 bytes: some Collection<UInt8>) -> Bool {
  bytes.count == 40
    && bytes.allSatisfy {
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
    }
}
