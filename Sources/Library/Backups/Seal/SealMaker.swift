import Basics
package import KeychainCrypto
import KeychainFormats

/// Makes the seals of a backup: under the key that its password leads to, or where it has none as lists of digests.
package final class SealMaker {
  private let key: SealKey?

  /// - Parameter manifestKey: Of a list of files that is rewritten; `nil` where that is in clear.
  package init(manifestKey: borrowing Secret?) throws(BackupArchiveError) {
    switch manifestKey {
    case .none: key = nil
    case .some(let manifestKey):
      key = try explained(StoredPart.seal.path) { () throws(DataProtectionError) in
        try SealKey(manifestKey: manifestKey)
      }
    }
  }

  /// Whether the code of a list is the one that this makes.
  func fits(_ list: SealList) throws(BackupArchiveError) -> Bool {
    switch key {
    case .none: return list.form == .digests
    case .some(let key):
      guard list.form == .keyed else { return false }
      return try explained(StoredPart.seal.path) { () throws(DataProtectionError) in
        try key.fits(list.code, over: Array(list.listed))
      }
    }
  }

  /// The seal of these files.
  package func seal(of entries: [SealList.Entry]) throws(BackupArchiveError) -> SealList {
    try SealList(entries, form: key == nil ? .digests : .keyed) { (listed) throws(BackupArchiveError) in
      try explained(StoredPart.seal.path) { () throws(DataProtectionError) in
        switch key {
        case .none: try Digest.sha256(listed)
        case .some(let key): try key.code(over: listed)
        }
      }
    }
  }
}
