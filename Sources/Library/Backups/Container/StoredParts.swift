/// The files of a backup that this module reads, as they are stored: encrypted ones still encrypted.
package struct StoredParts: Sendable {
  private var small: [StoredPart: [UInt8]] = [:]
  private var large: [StoredPart: StoredBytes] = [:]
  /// What is there and was not read.
  package var unreadable: [UnreadablePropertyList] = []
  /// Why there is a seal that was not read.
  package var sealFault: BackupArchiveError?
  /// The log and the journal beside `Manifest.db` that were not read, each with the reason.
  package var unreadJournals: [StoredPart: (byteCount: Int64, reason: String)] = [:]
  /// The pages of a log or a journal that stand for those of `Manifest.db`, and the file that has them.
  var replacedPages: (pages: ReplacedPages, from: StoredPart)?
  /// Whether the keychain's file lies under another name than a device gives it.
  package var isKeychainRenamed = false

  package subscript(part: StoredPart) -> [UInt8]? {
    get { small[part] }
    set { small[part] = newValue }
  }
  /// A part that may be larger than memory.
  package subscript(large part: StoredPart) -> StoredBytes? {
    get { large[part] }
    set { large[part] = newValue }
  }

  package var database: StoredBytes? { large[.database] }

  package func contains(_ part: StoredPart) -> Bool { small[part] != nil || large[part] != nil }

  /// What the list of files says that the backup is; `nil` where it has none.
  package var layout: BackupLayout? { BackupLayout.allCases.first { contains($0.listPart) } }

  /// Forgets what belongs to another layout: a device that was updated may have left its old list behind.
  package func only(_ layout: BackupLayout) -> StoredParts {
    var parts = self
    for other in BackupLayout.allCases where other != layout {
      for part in [other.listPart, other.keychainPart] { (parts.small[part], parts.large[part]) = (nil, nil) }
    }
    return parts
  }
}
