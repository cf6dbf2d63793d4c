package import Basics
package import KeychainCrypto
import KeychainFormats

/// What a backup's seal says, held against what was read when the backup was opened: its parts and its keychain.
package struct BackupSeal: Sendable {
  /// By what the backup is not what was sealed, as far as that shows without its password and without its other files.
  package let breaks: [SealBreak]
  /// `nil` for a seal of which nothing can be read.
  package let list: SealList?

  /// How many files it lists; 0 where nothing of it can be read.
  package var fileCount: Int { list?.count ?? 0 }
  /// Whether only who has the password could make it: then no change goes unseen. Otherwise accidents alone are seen.
  package var isKeyed: Bool { list?.form == .keyed }

  /// Reads the seal from a backup's stored parts.
  ///
  /// - Parameter takesKey: Whether the seal's code is made with a password; `nil` if it is unknown whether the backup
  ///   has a password.
  /// - Returns: `nil` if the backup has no seal.
  init?(of parts: StoredParts, layout: BackupLayout, takesKey: Bool?) throws(KeyhaulError) {
    let name = StoredPart.seal.path
    if let fault = parts.sealFault {
      self.init(breaks: [SealBreak(name, .unreadable(fault.reason))])
      return
    }
    guard let bytes = parts[.seal] else { return nil }
    let list: SealList
    do throws(KeyhaulError) {
      list = try SealList(parsing: bytes)
    } catch {
      self.init(breaks: [SealBreak(name, .unreadable(error.reason))])
      return
    }
    var breaks: [SealBreak] = []
    switch (list.form, takesKey) {
    case (.keyed, true?), (.keyed, nil): break
    case (.keyed, false?): breaks.append(SealBreak(name, .needlesslyKeyed))
    case (.digests, true?): breaks.append(SealBreak(name, .notKeyed))
    case (.digests, false?), (.digests, nil):
      let own = try explained(name) { () throws(DataProtectionError) in try Digest.sha256(Array(list.listed)) }
      if own != list.code { breaks.append(SealBreak(name, .listChanged)) }
    }
    for part in StoredPart.sealed(in: layout) {
      if let fact = list.fact(of: try parts.sealEntry(of: part), at: part.path) {
        breaks.append(SealBreak(part.path, fact))
      }
    }
    self.init(breaks: breaks, list: list)
  }

  private init(breaks: [SealBreak], list: SealList? = nil) {
    self.breaks = breaks
    self.list = list
  }
}

extension SealList {
  /// What is wrong with a file by this list; `nil` if it is what was sealed, or neither there nor listed.
  ///
  /// - Parameter found: `nil` for one that is not there.
  func fact(of found: Entry?, at path: String) -> SealBreak.Reason? {
    let lines = lines(of: path)
    guard let found else { return lines.isEmpty ? nil : .missing }
    guard !lines.isEmpty else { return .added }
    return lines.contains { self[$0] == found } ? nil : .changed
  }
}

extension StoredPart {
  /// The files that are read when a backup of this layout is opened.
  static func sealed(in layout: BackupLayout) -> [StoredPart] {
    [.manifest, .status, .info, layout.listPart, layout.keychainPart] + layout.journals
  }
}

extension StoredParts {
  /// What a seal lists of a part; `nil` if it is not there.
  func sealEntry(of part: StoredPart) throws(KeyhaulError) -> SealList.Entry? {
    if let stored = self[large: part] {
      return .init(path: part.path, byteCount: Int64(stored.byteCount), sha256: stored.sha256)
    }
    return try self[part].map { (bytes) throws(KeyhaulError) in try SealList.Entry(part.path, bytes) }
  }
}

/// Makes the seals of a backup: under the key that its password leads to, or where it has none as lists of digests.
package final class SealMaker {
  private let key: SealKey?

  /// - Parameter manifestKey: Of a list of files that is rewritten; `nil` if that is in clear.
  package init(manifestKey: borrowing Secret?) throws(KeyhaulError) {
    switch manifestKey {
    case .none: key = nil
    case .some(let manifestKey):
      key = try explained(StoredPart.seal.path) { () throws(DataProtectionError) in
        try SealKey(manifestKey: manifestKey)
      }
    }
  }

  /// Whether the code of a list is the one that this makes.
  func fits(_ list: SealList) throws(KeyhaulError) -> Bool {
    switch key {
    case .none: return list.form == .digests
    case .some(let key):
      guard list.form == .keyed else { return false }
      return try explained(StoredPart.seal.path) { () throws(DataProtectionError) in
        try key.matches(list.code, over: Array(list.listed))
      }
    }
  }

  /// The seal of these files.
  package func seal(of entries: [SealList.Entry]) throws(KeyhaulError) -> SealList {
    try SealList(entries, form: key == nil ? .digests : .keyed) { (listed) throws(KeyhaulError) in
      try explained(StoredPart.seal.path) { () throws(DataProtectionError) in
        switch key {
        case .none: try Digest.sha256(listed)
        case .some(let key): try key.code(over: listed)
        }
      }
    }
  }
}
