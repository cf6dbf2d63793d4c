/// The files of a backup that this module reads, as they are stored: encrypted ones still encrypted.
package struct StoredParts: Sendable {
  private var small: [StoredPart: [UInt8]] = [:]
  /// `Manifest.db`, which may be larger than memory.
  package var database: StoredBytes?
  /// What is there and was not read.
  package var unreadable: [UnreadablePropertyList] = []
  /// Why there is a seal that was not read.
  package var sealFault: BackupArchiveError?
  /// The journals beside `Manifest.db` that are not empty, by name, in bytes. Nothing is read of them.
  package var journals: [String: Int64] = [:]
  package static let journalNames = ["-wal", "-journal"].map { StoredPart.database.path + $0 }

  package subscript(part: StoredPart) -> [UInt8]? {
    get { small[part] }
    set { small[part] = newValue }
  }

  package func contains(_ part: StoredPart) -> Bool { part == .database ? database != nil : small[part] != nil }

  /// What the list of files says that the backup is; `nil` where it has none.
  package var layout: BackupLayout? { BackupLayout.allCases.first { contains($0.listPart) } }

  /// Forgets what belongs to another layout: a device that was updated may have left its old list behind.
  package func only(_ layout: BackupLayout) -> StoredParts {
    var parts = self
    for other in BackupLayout.allCases where other != layout {
      parts[other.listPart] = nil
      parts[other.keychainPart] = nil
    }
    return parts
  }
}
