package import Basics
import KeychainFormats

/// The stored metadata files of a backup, encrypted or not.
package struct MetadataFiles: Sendable {
  private var small: [MetadataFile: [UInt8]] = [:]
  private var large: [MetadataFile: SpooledData] = [:]
  /// The property lists that exist but were not read.
  package var unreadable: [UnreadablePropertyList] = []
  /// The reason why an existing seal was not read.
  package var sealFault: KeyhaulError?
  /// The log or journal files of `Manifest.db` that were not read, with their sizes and the reasons.
  package var unreadJournals: [MetadataFile: (byteCount: Int64, reason: String)] = [:]
  /// The pages that replace pages of `Manifest.db`, and the log or journal that contains them.
  var replacementPages: (pages: ReplacementPages, from: MetadataFile)?
  /// Whether the keychain file is at an unusual path.
  package var isKeychainRenamed = false

  /// The content of a small metadata file.
  package subscript(part: MetadataFile) -> [UInt8]? {
    get { small[part] }
    set { small[part] = newValue }
  }
  /// The content of a metadata file that may be too large for memory.
  package subscript(large part: MetadataFile) -> SpooledData? {
    get { large[part] }
    set { large[part] = newValue }
  }

  package var database: SpooledData? { large[.database] }

  package func contains(_ part: MetadataFile) -> Bool { small[part] != nil || large[part] != nil }

  /// The layout of the backup according to its list of files, or `nil` if it has none.
  package var layout: BackupLayout? { BackupLayout.allCases.first { contains($0.listPart) } }

  /// Returns a copy without the list and the keychain file of the other layout, which an updated device may leave in the
  /// backup.
  package func only(_ layout: BackupLayout) -> MetadataFiles {
    var parts = self
    for otherLayout in BackupLayout.allCases where otherLayout != layout {
      for part in [otherLayout.listPart, otherLayout.keychainPart] {
        (parts.small[part], parts.large[part]) = (nil, nil)
      }
    }
    return parts
  }
}
