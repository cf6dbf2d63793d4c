import Basics
import KeychainFormats

/// Which files of a backup a seal covers: those that reading it reads, by their paths. What else stands beside them is not
/// the backup's, and changes nothing of it.
package enum SealedPath {
  /// The property lists, both kinds of list, and what SQLite keeps beside one of them.
  private static let parts = ([StoredPart.manifest, .status, .info, .database, .oldDatabase] + StoredPart.journals).map
  { Array($0.path.utf8) }

  /// Whether it is a part, or a payload of either layout.
  static func isSealed(_ path: ArraySlice<UInt8>) -> Bool {
    if parts.contains(where: { $0.elementsEqual(path) }) { return true }
    switch path.count {
    case 40: return path.allSatisfy(isDigit)
    case 43:
      let name = path.dropFirst(3)
      return path[path.startIndex + 2] == UInt8(ascii: "/") && name.prefix(2) == path.prefix(2)
        && name.allSatisfy(isDigit)
    default: return false
    }
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (48...57).contains(byte) || (97...102).contains(byte) }

  /// Whether a backup of this layout is made of it too.
  package static func isSealed(_ path: String, in layout: BackupLayout) -> Bool {
    switch path {
    case StoredPart.manifest.path, StoredPart.status.path, StoredPart.info.path, layout.listPart.path: return true
    default:
      if layout.journals.contains(where: { $0.path == path }) { return true }
      guard let name = path.split(separator: "/").last, isFileIdentifier(name) else { return false }
      return layout.storedPath(of: String(name)) == path
    }
  }
}
