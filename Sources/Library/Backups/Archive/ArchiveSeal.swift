package import Basics
package import KeychainCrypto
import KeychainFormats

extension BackupArchive {
  /// Whether a seal of the backup is keyed with its password. The seal's key derives from that of the encrypted list of
  /// files.
  package var takesKeyedSeal: Bool { areFilesEncrypted && manifest.manifestKey != nil }

  /// Checks the code of a keyed seal.
  ///
  /// - Parameter keys: The backup's unlocked keybag.
  /// - Returns: The break, or `nil` if the code matches or the backup has no keyed seal.
  /// - Throws: The errors of `fileList(with:)` if the key of the list of files is not available.
  package func sealBreak(with keys: ClassKeys) throws(KeyhaulError) -> SealBreak? {
    guard takesKeyedSeal, let list = seal?.list, list.form == .keyed else { return nil }
    return try SealMaker(of: self, with: keys).fits(list) ? nil : SealBreak(StoredPart.seal.path, .forged)
  }

  /// Creates a meter that compares a payload with the seal while it is read, or returns `nil` if the backup has no
  /// readable seal.
  package func sealMeter() throws(KeyhaulError) -> SealMeter? { seal?.list == nil ? nil : try SealMeter() }

  /// Compares a payload with the seal.
  ///
  /// - Parameter meter: The meter of the completed read.
  /// - Returns: Whether they match, or `nil` if the payload is empty and the seal does not list it.
  package func isSealed(_ payload: StoredPayload, by meter: SealMeter) throws(KeyhaulError) -> Bool? {
    let path = layout.storedPath(of: payload.fileIdentifier)
    let found = try meter.entry(of: payload, at: path)
    guard let list = seal?.list, found.byteCount != 0 || !list.lines(of: path).isEmpty else { return nil }
    return list.fact(of: found, at: path) == nil
  }

  /// The seal entries of the files that are read when the backup is opened, except the keychain, which is a payload.
  ///
  /// - Throws: The error of reading `Status.plist` or `Info.plist`.
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
  /// Creates the seal of the backup after some files are replaced or removed. Keeps the old seal's entries of all other
  /// files.
  ///
  /// - Parameters:
  ///   - files: The new content of the replaced files, by path in the backup.
  ///   - removed: The paths of the removed files in the backup.
  ///   - maker: The seal maker of this backup.
  ///   - keepsOld: Whether to also keep the old entries of the replaced files. Allowed only for the manifest.
  /// - Returns: The new seal, or `nil` if the backup has no seal.
  /// - Throws: `.damaged` if the seal cannot be read or its code does not match.
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
  /// Creates a seal maker.
  ///
  /// - Parameter keys: The backup's unlocked keybag. Not used for an unkeyed seal.
  package convenience init(of archive: BackupArchive, with keys: ClassKeys) throws(KeyhaulError) {
    guard archive.takesKeyedSeal, let field = archive.manifest.manifestKey else {
      try self.init(manifestKey: nil)
      return
    }
    try self.init(manifestKey: try archive.fileKey(field, of: "the manifest database", keys: keys))
  }

  /// Creates a seal maker, possibly without keys.
  ///
  /// - Throws: `.keyUnavailable` if the seal requires keys.
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

/// Compares all files of a backup with its seal. The payloads can come in any order.
package final class SealCheck {
  private let archive: BackupArchive
  private let list: SealList
  /// Whether each line of the seal had a file.
  private var isSeen: [Bool]
  /// The payloads that do not match the seal.
  package private(set) var breaks: [SealBreak] = []
  /// The number of files that match the seal, including the metadata files.
  package private(set) var rightCount = 0

  /// Creates a check, or returns `nil` if the backup has no readable seal.
  package init?(_ archive: BackupArchive) throws(KeyhaulError) {
    guard let list = archive.seal?.list else { return nil }
    self.archive = archive
    self.list = list
    isSeen = Array(repeating: false, count: list.count)
    for part in StoredPart.sealed(in: archive.layout) where part != archive.layout.keychainPart {
      take(try archive.parts.sealEntry(of: part), at: part.path, isEntered: true)
    }
  }

  /// Compares a file with the seal.
  ///
  /// - Parameter isEntered: Whether a break of this file was already reported when the backup was opened.
  private func take(_ found: SealList.Entry?, at path: String, isEntered: Bool) {
    for line in list.lines(of: path) { isSeen[line] = true }
    if let fact = list.fact(of: found, at: path) {
      if !isEntered { breaks.append(SealBreak(path, fact)) }
    } else if found != nil {
      rightCount += 1
    }
  }

  /// Compares a payload with the seal.
  ///
  /// - Parameter entry: The result of a `SealMeter`.
  /// - Returns: The break, or `nil` if the payload matches.
  @discardableResult
  package func take(_ entry: SealList.Entry) -> SealBreak? {
    take(entry, at: entry.path, isEntered: entry.path == archive.layout.keychainPart.path)
    return list.fact(of: entry, at: entry.path).map { SealBreak(entry.path, $0) }
  }

  /// Adds a break for each missing file of the seal, sorted by path.
  package func finish() {
    for line in 0..<list.count where !isSeen[line] {
      let path = list[line].path
      // A missing keychain was already reported when the backup was opened.
      guard path != archive.layout.keychainPart.path else { continue }
      breaks.append(SealBreak(path, .missing))
    }
    breaks.sort { $0.file.utf8.lexicographicallyPrecedes($1.file.utf8) }
  }
}

/// Compares a file with its seal while it is converted. The converted file is sealed again, so it must be the original
/// one.
package final class SealedReading {
  private let path: String
  private let list: SealList
  private let digest: DigestStream
  private var byteCount: Int64 = 0

  /// Creates a check of one file.
  ///
  /// - Parameter path: The path in the backup.
  /// - Returns: `nil` if the backup has no seal.
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

  /// Ends the check.
  ///
  /// - Throws: `.damaged` if the file does not match the seal.
  package func finish() throws(KeyhaulError) {
    let sha256 = try explained(path) { () throws(DataProtectionError) in try digest.finish() }
    let found = SealList.Entry(path: path, byteCount: byteCount, sha256: sha256)
    guard let fact = list.fact(of: found, at: path) else { return }
    throw KeyhaulError(.damaged, ArchiveFinding.sealBroken(SealBreak(path, fact)).description)
  }
}

extension BackupArchive {
  /// Checks that all sealed payloads are stored.
  ///
  /// - Throws: `.payloadMissing` with the first missing payload.
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
