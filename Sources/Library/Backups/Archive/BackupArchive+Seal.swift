import Basics
public import KeychainCrypto
import KeychainFormats

extension BackupArchive {
  /// Whether a seal of it is made with its password: the key of an encrypted list of files leads to the seal's.
  public var takesKeyedSeal: Bool { areFilesEncrypted && manifest.manifestKey != nil }

  /// Whether the code over a keyed seal fits.
  ///
  /// - Parameter keys: The backup's keybag, unlocked.
  /// - Returns: `nil` where it does, or where there is no keyed seal to ask about.
  /// - Throws: As `fileList(with:)` where the key of the list of files cannot be had.
  public func sealBreak(with keys: borrowing ClassKeys) throws(BackupArchiveError) -> SealBreak? {
    guard takesKeyedSeal, let list = seal?.list, list.form == .keyed else { return nil }
    return try SealMaker(of: self, with: keys).fits(list) ? nil : SealBreak(StoredPart.seal.path, .forged)
  }

  /// A meter for a payload that is read, to hold it against the seal; `nil` where nothing of a seal can be read.
  package func sealMeter() throws(BackupArchiveError) -> SealMeter? { seal?.list == nil ? nil : try SealMeter() }

  /// Whether a payload that was read is what was sealed.
  ///
  /// - Parameter meter: What has watched it.
  /// - Returns: `nil` where nothing is stored and nothing was sealed.
  package func isSealed(_ payload: StoredPayload, by meter: SealMeter) throws(BackupArchiveError) -> Bool? {
    let path = layout.storedPath(of: payload.fileIdentifier)
    let found = try meter.entry(of: payload, at: path)
    guard let list = seal?.list, found.byteCount != 0 || !list.lines(of: path).isEmpty else { return nil }
    return list.fact(of: found, at: path) == nil
  }

  /// What a seal lists of the files that are read when the backup is opened; the keychain's is among the payloads.
  ///
  /// - Throws: Why `Status.plist` or `Info.plist` was not read.
  package func partSealEntries() throws(BackupArchiveError) -> [SealList.Entry] {
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
  /// The seal for when some of the files are replaced: of the others it lists what the old one does.
  ///
  /// - Parameters:
  ///   - files: What is replaced, by its path in the backup.
  ///   - removed: What is left out, by its path in the backup.
  ///   - maker: Of this backup.
  ///   - keepsOld: Whether the files are listed as they were too, which the manifest alone may be.
  /// - Returns: `nil` where there is no seal.
  /// - Throws: `.damaged` for a seal that cannot be read, or whose code does not fit.
  package func renewedSeal(
    for files: [String: [UInt8]], without removed: [String] = [], by maker: SealMaker, keepsOld: Bool = false
  ) throws(BackupArchiveError) -> SealList? {
    guard let seal else { return nil }
    var fault = seal.breaks.first
    if fault == nil, let list = seal.list, try !maker.fits(list) { fault = SealBreak(StoredPart.seal.path, .forged) }
    guard fault == nil, let list = seal.list else {
      throw BackupArchiveError(.damaged, fault.map { ArchiveFinding.sealBroken($0).description } ?? "")
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
  package convenience init(of archive: BackupArchive, with keys: borrowing ClassKeys) throws(BackupArchiveError) {
    guard archive.takesKeyedSeal, let field = archive.manifest.manifestKey else {
      try self.init(manifestKey: nil)
      return
    }
    try self.init(manifestKey: try archive.fileKey(field, of: "the manifest database", keys: keys))
  }

  /// The same where there may be no keys.
  ///
  /// - Throws: `.keyUnavailable` without the keys that it needs.
  package convenience init(of archive: BackupArchive, keys: borrowing ClassKeys?) throws(BackupArchiveError) {
    switch keys {
    case .none:
      guard !archive.takesKeyedSeal else {
        throw BackupArchiveError(.keyUnavailable, "its seal is made with its password")
      }
      try self.init(manifestKey: nil)
    case .some(let keys): try self.init(of: archive, with: keys)
    }
  }
}
