/// The files of a backup that this module reads, as they are stored: encrypted ones still encrypted.
struct StoredParts: Sendable {
  var manifest: [UInt8]?
  var status: [UInt8]?
  var info: [UInt8]?
  var database: [UInt8]?
  var keychain: [UInt8]?
  /// Whether the manifest database of iOS 9 and earlier is there.
  var hasOldDatabase = false

  subscript(part: StoredPart) -> [UInt8]? {
    get {
      switch part {
      case .manifest: manifest
      case .status: status
      case .info: info
      case .database: database
      case .keychain: keychain
      case .oldDatabase: nil
      }
    }
    set {
      switch part {
      case .manifest: manifest = newValue
      case .status: status = newValue
      case .info: info = newValue
      case .database: database = newValue
      case .keychain: keychain = newValue
      case .oldDatabase: hasOldDatabase = newValue != nil
      }
    }
  }

  var isEmpty: Bool { StoredPart.allCases.allSatisfy { self[$0] == nil } && !hasOldDatabase }
}

/// The files of a backup that have a name of their own.
enum StoredPart: CaseIterable {
  case manifest, status, info, database, keychain
  /// `Manifest.mbdb`, of iOS 9 and earlier; noticed, never read.
  case oldDatabase

  /// Relative to the backup's folder.
  var path: String {
    switch self {
    case .manifest: "Manifest.plist"
    case .status: "Status.plist"
    case .info: "Info.plist"
    case .database: "Manifest.db"
    case .keychain: KeychainPayload.storedPath
    case .oldDatabase: "Manifest.mbdb"
    }
  }

  func limit(_ limits: ArchiveLimits) -> Int {
    switch self {
    case .manifest, .status, .info: limits.propertyListByteCount
    case .database: limits.databaseByteCount
    case .keychain: limits.keychainByteCount
    case .oldDatabase: Int.max
    }
  }
}
