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
