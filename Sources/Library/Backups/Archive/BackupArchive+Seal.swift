package import Basics
package import KeychainCrypto
import KeychainFormats

extension BackupArchive {
  /// Whether the backup's seal is keyed with its password. The key of the seal is derived from the key of the encrypted
  /// list of files.
  package var usesKeyedSeal: Bool { areFilesEncrypted && manifest.manifestKey != nil }

  /// Checks the authentication code of a keyed seal.
  ///
  /// - Parameter keys: The backup's unlocked keybag.
  /// - Returns: The violation, or `nil` if the code matches or the backup has no keyed seal.
  /// - Throws: The errors of `fileList(with:)` if the key of the list of files is not available.
  package func sealViolation(with keys: ClassKeys) throws(KeyhaulError) -> SealViolation? {
    guard usesKeyedSeal, let sealFile = seal?.contents, sealFile.form == .keyed else { return nil }
    return try SealBuilder(of: self, with: keys).authenticates(sealFile)
      ? nil : SealViolation(MetadataFile.seal.path, .forged)
  }

  /// Creates a hasher that measures a payload while it is read, for `matchesSeal(_:by:)`. Returns `nil` if the backup
  /// has no readable seal.
  package func payloadHasher() throws(KeyhaulError) -> PayloadHasher? {
    seal?.contents == nil ? nil : try PayloadHasher()
  }

  /// Compares a payload with the seal.
  ///
  /// - Parameter hasher: The hasher that measured the payload.
  /// - Returns: Whether the payload matches the seal, or `nil` if the payload is empty and the seal does not list it.
  package func matchesSeal(_ payload: StoredPayload, by hasher: PayloadHasher) throws(KeyhaulError) -> Bool? {
    let path = layout.storedPath(of: payload.fileIdentifier)
    let entry = try hasher.entry(of: payload, at: path)
    guard let sealFile = seal?.contents, entry.byteCount != 0 || !sealFile.lines(of: path).isEmpty else { return nil }
    return sealFile.violation(of: entry, at: path) == nil
  }

  /// The seal entries of the files that are read when the backup is opened, except the keychain, which is a payload.
  ///
  /// - Throws: `.overLimit` if `Status.plist` or `Info.plist` was too large to be read; an error if a digest cannot be
  ///   computed.
  package func metadataSealEntries() throws(KeyhaulError) -> [SealFile.Entry] {
    let tooLarge = unreadablePropertyLists.first { $0.error.code == .overLimit }
    if let tooLarge { throw tooLarge.error }
    var entries: [SealFile.Entry] = []
    for part in MetadataFile.sealed(in: layout) where part != layout.keychainPart {
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
  ///   - newFiles: The new content of the replaced files, by path in the backup.
  ///   - removedPaths: The paths of the removed files in the backup.
  ///   - builder: The seal builder of this backup.
  ///   - keepsOldEntries: Whether to keep the old entries of the replaced files as well. Allowed only for the manifest.
  /// - Returns: The new seal, or `nil` if the backup has no seal.
  /// - Throws: `.damaged` if the seal cannot be read or its code does not match.
  package func updatedSeal(
    for newFiles: [String: [UInt8]], without removedPaths: [String] = [], by builder: SealBuilder,
    keepsOldEntries: Bool = false
  ) throws(KeyhaulError) -> SealFile? {
    guard let seal else { return nil }
    var violation = seal.violations.first
    if violation == nil, let oldSeal = seal.contents, try !builder.authenticates(oldSeal) {
      violation = SealViolation(MetadataFile.seal.path, .forged)
    }
    guard violation == nil, let oldSeal = seal.contents else {
      throw KeyhaulError(.damaged, violation.map { BackupFinding.sealBroken($0).description } ?? "")
    }
    var entries = oldSeal.entries(without: Set(newFiles.keys).union(removedPaths))
    for (path, bytes) in newFiles.sorted(by: { $0.key < $1.key }) {
      let entry = try SealFile.Entry(path, bytes)
      entries.append(entry)
      if keepsOldEntries, let oldEntry = oldSeal.entries(at: path).first(where: { $0 != entry }) {
        entries.append(oldEntry)
      }
    }
    return try builder.seal(of: entries)
  }
}

extension SealBuilder {
  /// Creates a seal builder.
  ///
  /// - Parameter keys: The backup's unlocked keybag. Not used for an unkeyed seal.
  package convenience init(of archive: BackupArchive, with keys: ClassKeys) throws(KeyhaulError) {
    guard archive.usesKeyedSeal, let field = archive.manifest.manifestKey else {
      try self.init(manifestKey: nil)
      return
    }
    try self.init(manifestKey: try archive.fileKey(field, of: "the manifest database", keys: keys))
  }

  /// Creates a seal builder, possibly without keys.
  ///
  /// - Throws: `.keyUnavailable` if the seal requires keys.
  package convenience init(of archive: BackupArchive, keys: ClassKeys?) throws(KeyhaulError) {
    switch keys {
    case .none:
      guard !archive.usesKeyedSeal else {
        throw KeyhaulError(.keyUnavailable, "making its seal requires its password")
      }
      try self.init(manifestKey: nil)
    case .some(let keys): try self.init(of: archive, with: keys)
    }
  }
}

/// Compares all files of a backup with its seal. The payloads can come in any order.
package final class SealVerifier {
  private let archive: BackupArchive
  private let sealFile: SealFile
  /// For each line of the seal, whether its file was compared.
  private var wasCompared: [Bool]
  /// The payloads that do not match the seal.
  package private(set) var violations: [SealViolation] = []
  /// The number of files that match the seal, including the metadata files.
  package private(set) var matchingCount = 0

  /// Creates a verifier, or returns `nil` if the backup has no readable seal.
  package init?(_ archive: BackupArchive) throws(KeyhaulError) {
    guard let sealFile = archive.seal?.contents else { return nil }
    self.archive = archive
    self.sealFile = sealFile
    wasCompared = Array(repeating: false, count: sealFile.count)
    for part in MetadataFile.sealed(in: archive.layout) where part != archive.layout.keychainPart {
      compare(try archive.parts.sealEntry(of: part), at: part.path, isAlreadyReported: true)
    }
  }

  /// Compares a file with the seal.
  ///
  /// - Parameter isAlreadyReported: Whether a violation of this file was already reported when the backup was opened.
  private func compare(_ entry: SealFile.Entry?, at path: String, isAlreadyReported: Bool) {
    for line in sealFile.lines(of: path) { wasCompared[line] = true }
    if let reason = sealFile.violation(of: entry, at: path) {
      if !isAlreadyReported { violations.append(SealViolation(path, reason)) }
    } else if entry != nil {
      matchingCount += 1
    }
  }

  /// Compares a payload with the seal.
  ///
  /// - Parameter entry: The result of a `PayloadHasher`.
  /// - Returns: The violation, or `nil` if the payload matches.
  @discardableResult
  package func compare(_ entry: SealFile.Entry) -> SealViolation? {
    compare(entry, at: entry.path, isAlreadyReported: entry.path == archive.layout.keychainPart.path)
    return sealFile.violation(of: entry, at: entry.path).map { SealViolation(entry.path, $0) }
  }

  /// Adds a violation for each missing file of the seal, and sorts all violations by path.
  package func finish() {
    for line in 0..<sealFile.count where !wasCompared[line] {
      let path = sealFile[line].path
      // A missing keychain was already reported when the backup was opened.
      guard path != archive.layout.keychainPart.path else { continue }
      violations.append(SealViolation(path, .missing))
    }
    violations.sort { $0.file.utf8.lexicographicallyPrecedes($1.file.utf8) }
  }
}

/// Compares a file with the seal while the file is converted. The converted file gets a new seal, so the original file
/// must match the old seal.
package final class FileSealVerifier {
  private let path: String
  private let sealFile: SealFile
  private let digest: DigestStream
  private var byteCount: Int64 = 0

  /// Creates a verifier for a file.
  ///
  /// - Parameter path: The path in the backup.
  /// - Returns: The verifier, or `nil` if the backup has no readable seal.
  package init?(of path: String, in archive: BackupArchive) throws(KeyhaulError) {
    guard let sealFile = archive.seal?.contents else { return nil }
    self.path = path
    self.sealFile = sealFile
    digest = try translatingErrors(in: path) { () throws(DataProtectionError) in try DigestStream(.sha256) }
  }

  package func update(_ bytes: UnsafeRawBufferPointer) throws(KeyhaulError) {
    byteCount += Int64(bytes.count)
    try translatingErrors(in: path) { () throws(DataProtectionError) in try digest.update(bytes) }
  }

  /// Ends the check.
  ///
  /// - Throws: `.damaged` if the file does not match the seal.
  package func finish() throws(KeyhaulError) {
    let sha256 = try translatingErrors(in: path) { () throws(DataProtectionError) in try digest.finish() }
    let entry = SealFile.Entry(path: path, byteCount: byteCount, sha256: sha256)
    guard let reason = sealFile.violation(of: entry, at: path) else { return }
    throw KeyhaulError(.damaged, BackupFinding.sealBroken(SealViolation(path, reason)).description)
  }
}

extension BackupArchive {
  /// Checks that all sealed payloads are stored.
  ///
  /// - Throws: `.payloadMissing` with the first missing payload.
  package func requireSealedPayloads(_ stored: StoredPayloads) throws(KeyhaulError) {
    guard let sealFile = seal?.contents else { return }
    for index in 0..<sealFile.count {
      let path = sealFile[index].path
      guard let identifier = path.split(separator: "/").last, isFileIdentifier(identifier) else { continue }
      let isStored = stored.byteCount(of: identifier) != nil && layout.storedPath(of: String(identifier)) == path
      guard !isStored else { continue }
      throw KeyhaulError(
        .payloadMissing, BackupFinding.sealBroken(SealViolation(path, .missing)).description)
    }
  }
}
