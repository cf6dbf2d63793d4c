package import Basics
package import KeychainCrypto
import KeychainFormats

/// A copy of a backup with a new keychain file. Only this file, the file list with its key, size, and digest, and the
/// seal change.
final class KeychainReplacement {
  private let archive: BackupArchive
  private let keys: ClassKeys
  /// The new keychain file.
  private let plaintext: [UInt8]
  /// The changed files as they are stored, by path: the keychain file, the file list, and the seal if there is one.
  private var newFiles: [String: [UInt8]] = [:]
  /// Files that are not part of the backup and were not copied.
  private(set) var unrelatedFiles: [String] = []

  /// Creates the changed files.
  ///
  /// - Parameters:
  ///   - plaintext: The new keychain file.
  ///   - keys: The backup's unlocked class keys, including those of the file list and the keychain file.
  init(
    _ plaintext: [UInt8], in archive: BackupArchive, keys: ClassKeys, random: some RandomSource
  ) throws(KeyhaulError) {
    self.archive = archive
    self.keys = keys
    self.plaintext = plaintext
    let identifier = KeychainPayload.fileIdentifier
    let oldPayload = try archive.keychainFile(with: self.keys)
    let list = try ManifestWorkingCopy(try archive.databaseBytes(with: self.keys))
    guard let oldRecord = try list.archive(of: identifier) else { throw Self.missingRecordError }
    let record = try translatingErrors(in: "the record of the keychain file") { () throws(FormatError) in
      try FileRecord(archive: oldRecord)
    }
    var stored = plaintext
    var wrappedKey: ClassWrappedKey?
    if archive.areFilesEncrypted {
      (stored, wrappedKey) = try Self.encrypted(plaintext, record.protectionClass, with: self.keys, random)
    }
    let isPlaintextDigest = try isPlaintextDigest(record.digest, of: oldPayload)
    let digest = record.digest == nil ? nil : try Self.sha1(isPlaintextDigest ? plaintext : stored)
    let newRecord = try translatingErrors(in: "the record of the keychain file") { () throws(FormatError) in
      try FileRecord.replacing(
        encryptionKey: wrappedKey, digest: digest, size: Int64(plaintext.count), in: oldRecord)
    }
    try list.replaceArchive(of: identifier, with: newRecord)
    newFiles[archive.layout.keychainPart.path] = stored
    newFiles[MetadataFile.database.path] = try encrypted(list: try list.serialized())
    if let seal = try archive.updatedSeal(
      for: newFiles, without: MetadataFile.journals.map(\.path), by: SealBuilder(of: archive, with: self.keys))
    {
      newFiles[MetadataFile.seal.path] = seal.bytes
    }
  }

  private static let missingRecordError = KeyhaulError(
    .damaged, "the manifest does not describe the keychain file")

  /// Returns whether the file list contains the digest of the plaintext instead of the stored bytes, as in some
  /// backups.
  private func isPlaintextDigest(
    _ recordedDigest: [UInt8]?, of oldPayload: KeychainPayload
  ) throws(KeyhaulError) -> Bool {
    guard let oldStored = archive.parts[large: archive.layout.keychainPart] else { throw Self.missingRecordError }
    guard let recordedDigest, try recordedDigest != oldStored.sha1() else { return false }
    return try recordedDigest == Self.sha1(oldPayload.bytes)
  }

  private static func encrypted(
    _ plaintext: [UInt8], _ keyClass: KeyClass, with keys: ClassKeys, _ random: some RandomSource
  ) throws(KeyhaulError) -> (stored: [UInt8], wrappedKey: ClassWrappedKey) {
    let part = "the keychain file"
    let (stored, field) = try translatingErrors(in: part) { () throws(DataProtectionError) in
      let key = try Secret(count: 32, from: random)
      let stored = try FileCipher.encrypt(plaintext, key: key)
      return (stored, try keys.wrapFileKey(key, keyClass: keyClass, random: random))
    }
    return (stored, try translatingErrors(in: part) { () throws(FormatError) in try ClassWrappedKey(parsing: field) })
  }

  /// Encrypts the file list with its current key, so that `Manifest.plist` stays unchanged.
  private func encrypted(list: [UInt8]) throws(KeyhaulError) -> [UInt8] {
    guard archive.isListFileEncrypted, let field = archive.manifest.manifestKey else { return list }
    let key = try archive.fileKey(field, of: "the manifest database", keys: keys)
    return try translatingErrors(in: "the manifest database") { () throws(DataProtectionError) in
      try FileCipher.encrypt(list, key: key)
    }
  }

  private static func sha1(_ bytes: [UInt8]) throws(KeyhaulError) -> [UInt8] {
    try translatingErrors(in: "the keychain file") { () throws(DataProtectionError) in try Digest.sha1(bytes) }
  }

  // MARK: Writing

  /// Checks that the backup's directory has no other files.
  ///
  /// - Throws: `.occupied` if the directory has other files, which would be lost.
  func prepare(_ files: BackupFiles) throws(KeyhaulError) {
    do throws(KeyhaulError) {
      guard let unrelatedPath = try files.unrelatedPaths().first else { return }
      throw KeyhaulError(.occupied, "\(quoted(unrelatedPath)) is not part of the backup and would be lost")
    } catch {
      throw BackupInstaller(system: files.system).explain(error, path: "the backup", needs: nil)
    }
  }

  func send(
    _ files: BackupFiles, to sink: any StoredFileSink, _ target: BackupRewriter.Target,
    _ copyProgress: CopyProgress
  ) throws(KeyhaulError) {
    unrelatedFiles += try files.forEachFile { (file) throws(KeyhaulError) in
      if file.isJournal { return }
      guard file.isPartOfBackup || !target.isCopy else { return unrelatedFiles.append(file.name.shown) }
      let (name, time) = (target.name(of: file), target.modificationTime(of: file, in: archive))
      guard file.isPartOfBackup, let bytes = newFiles[file.path] else {
        if target.isCopy { return try file.copy(to: sink, as: name, modificationTime: time, copyProgress) }
        return try file.copyOrLink(to: sink, copyProgress)
      }
      try sink.add(name, bytes, modificationTime: time)
      try copyProgress.add(Int(clamping: file.byteCount))
    }
  }

  // MARK: Check

  /// Compares the new backup with the original, before the new one replaces it.
  func check(_ copy: BackupArchive, stored: StoredPayloads) throws(KeyhaulError) {
    guard copy.parts[.manifest] == archive.parts[.manifest], copy.isEncrypted == archive.isEncrypted,
      copy.parts[.status] == archive.parts[.status],
      try copy.storedFiles().count == stored.count, try copy.keychainFile(with: keys).bytes == plaintext
    else { throw KeyhaulError(.changed, "the backup changed while it was being rewritten") }
  }
}

extension BackupRewriter {
  /// Replaces the keychain file of a backup. The file list, which contains that file's key, size and digest, is
  /// rewritten, and so is the seal. The file list's journals are removed. All other files of the backup stay identical.
  ///
  /// A directory is rebuilt next to the old one, with hard links to its files if the file system supports them, and
  /// copies otherwise. Then the two directories are exchanged. A container file is copied. At any time, either the old
  /// or the new backup exists.
  ///
  /// - Parameters:
  ///   - archive: The backup that was opened at `path`. If it has changed since, nothing is written.
  ///   - path: The path of a directory or one file, not of a link.
  ///   - file: The new keychain file, unencrypted, with items that are encrypted for the backup's keybag.
  ///   - keys: The unlocked class keys of that keybag.
  ///   - target: The destination of the changed backup.
  ///   - random: The source of the file's key.
  ///   - progress: Called with the number of bytes copied; if it returns `false`, the work ends with `.interrupted`.
  /// - Throws: `.unsupported` for a backup of iOS 9 and earlier, `.sealedList` for one of iOS 10.0, `.decryptedCopy`
  ///   for a decrypted copy; `.noKeychain`; `.occupied` if the backup's directory contains other files, which would
  ///   be lost; otherwise the errors of `BackupWriter`.
  package func replaceKeychain(
    of archive: BackupArchive, at path: String, with file: [UInt8], keys: ClassKeys, to target: Target = .inPlace,
    random: some RandomSource = SystemRandomSource(), progress: @escaping Progress = { _, _ in true }
  ) throws(KeyhaulError) -> RewrittenBackup {
    try Self.checkReencryption(of: archive)
    let stored = try archive.storedFiles()
    let replacement = try KeychainReplacement(file, in: archive, keys: keys, random: random)
    let copyProgress = CopyProgress(total: stored.byteCount + archive.metadataByteCount, progress)
    let files = self.files(of: archive, at: path)
    if !target.isCopy { try replacement.prepare(files) }
    var outgoing = OutgoingBackup(
      directoryName: target.isCopy ? archive.directoryName : nil, byteCount: copyProgress.total,
      isEncrypted: archive.areFilesEncrypted
    ) { (sink) throws(KeyhaulError) in
      try replacement.send(files, to: sink, target, copyProgress)
    }
    outgoing.check = { (written) throws(KeyhaulError) in
      // The backup must be unchanged, because its other files are not read again.
      guard try reopen(path, like: archive).digest == archive.digest else {
        throw KeyhaulError(.changed, "the backup changed while it was being rewritten")
      }
      try replacement.check(try reopen(written, like: archive), stored: stored)
    }
    let installed = try install(outgoing, of: files, to: target, keeping: .all)
    return RewrittenBackup(
      path: installed.path, byteCount: installed.byteCount, fileCount: stored.count, isDurable: installed.isDurable,
      leftover: installed.leftover, unrelatedFiles: target.isCopy ? replacement.unrelatedFiles : [])
  }
}
