package import Basics
package import KeychainCrypto
import KeychainFormats

extension BackupArchive {
  /// Whether a seal of it is made with its password: the key of an encrypted list of files leads to the seal's.
  package var takesKeyedSeal: Bool { areFilesEncrypted && manifest.manifestKey != nil }

  /// Checks whether the code of a keyed seal matches.
  ///
  /// - Parameter keys: The backup's keybag, unlocked.
  /// - Returns: The break; `nil` if the code matches, or if there is no keyed seal to check.
  /// - Throws: The errors of `fileList(with:)` if the key of the file list is not available.
  package func sealBreak(with keys: ClassKeys) throws(KeyhaulError) -> SealBreak? {
    guard takesKeyedSeal, let list = seal?.list, list.form == .keyed else { return nil }
    return try SealMaker(of: self, with: keys).fits(list) ? nil : SealBreak(StoredPart.seal.path, .forged)
  }

  /// A meter for a payload that is read, to hold it against the seal; `nil` if nothing of a seal can be read.
  package func sealMeter() throws(KeyhaulError) -> SealMeter? { seal?.list == nil ? nil : try SealMeter() }

  /// Whether a payload that was read is what was sealed.
  ///
  /// - Parameter meter: What has watched it.
  /// - Returns: `nil` if nothing is stored and nothing was sealed.
  package func isSealed(_ payload: StoredPayload, by meter: SealMeter) throws(KeyhaulError) -> Bool? {
    let path = layout.storedPath(of: payload.fileIdentifier)
    let found = try meter.entry(of: payload, at: path)
    guard let list = seal?.list, found.byteCount != 0 || !list.lines(of: path).isEmpty else { return nil }
    return list.fact(of: found, at: path) == nil
  }

  /// What a seal lists of the files that are read when the backup is opened; the keychain's is among the payloads.
  ///
  /// - Throws: Why `Status.plist` or `Info.plist` was not read.
  package func partSealEntries() throws(KeyhaulError) -> [SealList.Entry] {
    let unread = unreadablePropertyLists.first { $0.error.code == .overLimit }
    if let unread { throw unread.error }
    var entries: [SealList.Entry] = []
    for part in StoredPart.sealed(in: layout) where part != layout.keychainPart {
      if let entry = try parts.sealEntry(of: part) { entries.append(entry) }
    }
    return entries
  }
}

extension BackupArchive {
  /// Creates the seal of the backup after some files are replaced or removed. Keeps the old seal's entries for all
  /// other files.
  ///
  /// - Parameters:
  ///   - files: The new bytes of the replaced files, by path in the backup.
  ///   - removed: The paths of the removed files in the backup.
  ///   - maker: The seal maker of this backup.
  ///   - keepsOld: Whether to also keep the old entries of the replaced files; allowed only for the manifest.
  /// - Returns: The new seal; `nil` if the backup has no seal.
  /// - Throws: `.damaged` if the seal cannot be read, or its code does not match.
  package func renewedSeal(
    for files: [String: [UInt8]], without removed: [String] = [], by maker: SealMaker, keepsOld: Bool = false
  ) throws(KeyhaulError) -> SealList? {
    guard let seal else { return nil }
    var fault = seal.breaks.first
    if fault == nil, let list = seal.list, try !maker.fits(list) { fault = SealBreak(StoredPart.seal.path, .forged) }
    guard fault == nil, let list = seal.list else {
      throw KeyhaulError(.damaged, fault.map { ArchiveFinding.sealBroken($0).description } ?? "")
    }
    var entries = list.entries(without: Set(files.keys).union(removed))
    for (path, bytes) in files.sorted(by: { $0.key < $1.key }) {
      let entry = try SealList.Entry(path, bytes)
      entries.append(entry)
      if keepsOld, let old = list.entries(at: path).first(where: { $0 != entry }) { entries.append(old) }
    }
    return try maker.seal(of: entries)
  }
}

extension SealMaker {
  /// - Parameter keys: The backup's keybag, unlocked; not used for a list of digests.
  package convenience init(of archive: BackupArchive, with keys: ClassKeys) throws(KeyhaulError) {
    guard archive.takesKeyedSeal, let field = archive.manifest.manifestKey else {
      try self.init(manifestKey: nil)
      return
    }
    try self.init(manifestKey: try archive.fileKey(field, of: "the manifest database", keys: keys))
  }

  /// The same where there may be no keys.
  ///
  /// - Throws: `.keyUnavailable` without the keys that it needs.
  package convenience init(of archive: BackupArchive, keys: ClassKeys?) throws(KeyhaulError) {
    switch keys {
    case .none:
      guard !archive.takesKeyedSeal else {
        throw KeyhaulError(.keyUnavailable, "making its seal requires its password")
      }
      try self.init(manifestKey: nil)
    case .some(let keys): try self.init(of: archive, with: keys)
    }
  }
}

/// Holds every file of a backup against its seal: the payloads as they come by, in whatever order.
package final class SealCheck {
  private let archive: BackupArchive
  private let list: SealList
  /// By the lines of the list.
  private var isSeen: [Bool]
  /// What of the payloads is not what was sealed.
  package private(set) var breaks: [SealBreak] = []
  /// How many files, the parts among them, are what was sealed.
  package private(set) var rightCount = 0

  /// - Returns: `nil` if nothing of a seal can be read.
  package init?(_ archive: BackupArchive) throws(KeyhaulError) {
    guard let list = archive.seal?.list else { return nil }
    self.archive = archive
    self.list = list
    isSeen = Array(repeating: false, count: list.count)
    for part in StoredPart.sealed(in: archive.layout) where part != archive.layout.keychainPart {
      take(try archive.parts.sealEntry(of: part), at: part.path, isEntered: true)
    }
  }

  /// - Parameter isEntered: Whether what is wrong with it was said when the backup was opened.
  private func take(_ found: SealList.Entry?, at path: String, isEntered: Bool) {
    for line in list.lines(of: path) { isSeen[line] = true }
    if let fact = list.fact(of: found, at: path) {
      if !isEntered { breaks.append(SealBreak(path, fact)) }
    } else if found != nil {
      rightCount += 1
    }
  }

  /// Takes in a payload that was read.
  ///
  /// - Parameter entry: What a `SealMeter` found.
  /// - Returns: How it is not what was sealed; `nil` if it is.
  @discardableResult
  package func take(_ entry: SealList.Entry) -> SealBreak? {
    take(entry, at: entry.path, isEntered: entry.path == archive.layout.keychainPart.path)
    return list.fact(of: entry, at: entry.path).map { SealBreak(entry.path, $0) }
  }

  /// Adds the files that were sealed and did not come by, in the order of their paths.
  package func finish() {
    for line in 0..<list.count where !isSeen[line] {
      let path = list[line].path
      // That it is not there was said when the backup was opened.
      guard path != archive.layout.keychainPart.path else { continue }
      breaks.append(SealBreak(path, .missing))
    }
    breaks.sort { $0.file.utf8.lexicographicallyPrecedes($1.file.utf8) }
  }
}

/// One reading of a sealed file that is to be written in another form: what it becomes is sealed again, so that it has to
/// be what was sealed.
package final class SealedReading {
  private let path: String
  private let list: SealList
  private let digest: DigestStream
  private var byteCount: Int64 = 0

  /// - Parameter path: In the backup.
  /// - Returns: `nil` for a backup without a seal.
  package init?(of path: String, in archive: BackupArchive) throws(KeyhaulError) {
    guard let list = archive.seal?.list else { return nil }
    self.path = path
    self.list = list
    digest = try explained(path) { () throws(DataProtectionError) in try DigestStream(.sha256) }
  }

  package func update(_ bytes: UnsafeRawBufferPointer) throws(KeyhaulError) {
    byteCount += Int64(bytes.count)
    try explained(path) { () throws(DataProtectionError) in try digest.update(bytes) }
  }

  /// - Throws: `.damaged` where it is not what was sealed.
  package func finish() throws(KeyhaulError) {
    let sha256 = try explained(path) { () throws(DataProtectionError) in try digest.finish() }
    let found = SealList.Entry(path: path, byteCount: byteCount, sha256: sha256)
    guard let fact = list.fact(of: found, at: path) else { return }
    throw KeyhaulError(.damaged, ArchiveFinding.sealBroken(SealBreak(path, fact)).description)
  }
}

extension BackupArchive {
  /// Refuses a backup of which payloads that were sealed are not stored.
  ///
  /// - Throws: `.payloadMissing` with the first of them.
  package func requireSealed(_ stored: StoredPayloads) throws(KeyhaulError) {
    guard let list = seal?.list else { return }
    for index in 0..<list.count {
      let path = list[index].path
      guard let name = path.split(separator: "/").last, isFileIdentifier(name) else { continue }
      guard stored.byteCount(of: name) == nil || layout.storedPath(of: String(name)) != path else { continue }
      throw KeyhaulError(
        .payloadMissing, ArchiveFinding.sealBroken(SealBreak(path, .missing)).description)
    }
  }
}
