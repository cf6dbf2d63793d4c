import Basics
import KeychainCrypto
import KeychainFormats

/// Writes a copy of a backup in which all files are encrypted, or all files are decrypted.
final class BackupReencryptor<Random: RandomSource> {
  let copyProgress: CopyProgress
  private(set) var fileCount = 0
  /// Payloads that are not listed. They are not copied, because their meaning is unknown.
  private(set) var unlistedPaths: [String] = []
  /// Files that are not part of the backup and are not copied.
  private(set) var unrelatedFiles: [String] = []
  private let archive: BackupArchive
  private let keybag: Keybag
  private let keys: ClassKeys
  private let target: BackupRewriter.Target
  private let random: Random
  private let list: ManifestWorkingCopy
  /// The plaintext size of each payload, which is determined before writing, because an entry begins with its size.
  private var plainByteCounts: [String: Int64] = [:]

  /// The class for files whose own class is unusable: readable after the first unlock.
  private static var fileClass: KeyClass { .fileUntilFirstUserAuthentication }

  init(
    _ archive: BackupArchive, keybag: Keybag, keys: ClassKeys, target: BackupRewriter.Target, random: Random,
    copyProgress: CopyProgress
  ) throws(KeyhaulError) {
    list = try ManifestWorkingCopy(try archive.databaseBytes(with: keys))
    self.archive = archive
    self.keybag = keybag
    self.keys = keys
    self.target = target
    self.random = random
    self.copyProgress = copyProgress
  }

  private var encrypts: Bool { !archive.isEncrypted }

  // MARK: Preparation

  /// Determines the values that are required before the first byte is written.
  func prepare(_ files: BackupFiles) throws(KeyhaulError) {
    do throws(KeyhaulError) {
      if !target.isCopy, let unrelatedPath = try files.unrelatedPaths().first {
        throw KeyhaulError(.occupied, "\(quoted(unrelatedPath)) is not part of the backup and would be lost")
      }
      guard !encrypts else { return }
      try files.forEachFile { (file) throws(KeyhaulError) in
        guard let identifier = file.payloadIdentifier, let key = try fileKey(of: identifier) else { return }
        plainByteCounts[identifier] = try plainByteCount(of: file, key: key)
      }
    } catch {
      throw BackupInstaller(system: .real).explain(error, path: "the backup", needs: nil)
    }
  }

  /// Returns the size of a file without its padding, which is in the last block.
  private func plainByteCount(of file: BackupFiles.File, key: borrowing Secret) throws(KeyhaulError) -> Int64 {
    guard file.byteCount > 0 else { return 0 }
    let blockSize = FileSectionDecryptor.blockSize
    let lastBlocks = try file.lastBytes(2 * blockSize)
    guard file.byteCount.isMultiple(of: Int64(blockSize)) else { throw damaged(file) }
    let end = try translatingErrors(in: file.path) { () throws(DataProtectionError) in
      var ending = FileEnding(decryptor: try FileDecryptor(key: key))
      lastBlocks.withRawBytes { ending.update($0) }
      return try ending.finish()
    }
    guard end.hasValidPadding else { throw damaged(file) }
    let paddingByteCount = Int64(lastBlocks.count) - end.plainByteCount
    return file.byteCount - paddingByteCount
  }

  private func damaged(_ file: BackupFiles.File) -> KeyhaulError {
    KeyhaulError(.damaged, "\(file.path) does not end with valid padding")
  }

  // MARK: Writing

  /// Writes all files, and then the file list, the manifest and the seal, which depend on the other files.
  func send(_ files: BackupFiles, to outputSink: any StoredFileSink) throws(KeyhaulError) {
    let sink = try SealingSink(outputSink, layout: archive.layout, directory: target.isCopy ? .none : files.directory)
    var time: Int64 = 0
    var prefix = EntryName.none
    let unrelatedPaths = try files.forEachFile { (file) throws(KeyhaulError) in
      guard file.isPartOfBackup || !target.isCopy else { return unrelatedFiles.append(file.name.shown) }
      guard !file.isLeftover else { return unlistedPaths.append(file.path) }
      let name = target.name(of: file)
      if let identifier = file.payloadIdentifier {
        guard let record = try list.archive(of: identifier) else { return unlistedPaths.append(file.path) }
        try reencrypt(file, identifier, record, to: sink)
      } else if file.path == MetadataFile.manifest.path || file.path == MetadataFile.database.path {
        time = target.modificationTime(of: file, in: archive)
        prefix = name.dropLast(file.path.utf8.count)
        return
      } else if file.path == MetadataFile.seal.path || file.isJournal {
        return
      } else {
        try file.copy(
          to: sink, as: name, modificationTime: target.modificationTime(of: file, in: archive), copyProgress)
      }
      fileCount += 1
    }
    if target.isCopy { unrelatedFiles += unrelatedPaths }
    let metadata = try deferredMetadata()
    try sink.add(prefix + MetadataFile.database.path, metadata.database, modificationTime: time)
    try sink.add(prefix + MetadataFile.manifest.path, metadata.manifest, modificationTime: time)
    let seal = try makeSeal(of: sink.entries, metadata.key)
    try sink.add(prefix + MetadataFile.seal.path, seal.bytes, modificationTime: time)
    // The file list, the manifest and the seal.
    fileCount += 3
  }

  /// The new values in a file's record in the file list.
  private struct RecordChange {
    let key: ClassWrappedKey?
    let digest: [UInt8]
  }

  /// Writes a payload encrypted or decrypted, and updates its record.
  private func reencrypt(
    _ file: BackupFiles.File, _ identifier: String, _ oldRecord: [UInt8], to sink: any StoredFileSink
  ) throws(KeyhaulError) {
    let change = encrypts ? try encrypt(file, oldRecord, to: sink) : try decrypt(file, identifier, to: sink)
    let newRecord = try translatingErrors(in: "the record of \(file.path)") { () throws(FormatError) in
      try FileRecord.replacing(encryptionKey: change.key, digest: change.digest, in: oldRecord)
    }
    try list.replaceArchive(of: identifier, with: newRecord)
  }

  private func encrypt(
    _ file: BackupFiles.File, _ recordArchive: [UInt8], to sink: any StoredFileSink
  ) throws(KeyhaulError) -> RecordChange {
    let record = try translatingErrors(in: "the record of \(file.path)") { () throws(FormatError) in
      try FileRecord(archive: recordArchive)
    }
    let recordedClass = record.protectionClass
    let isUsable =
      (KeyClass.fileComplete...KeyClass.fileNone).contains(recordedClass) && keys.hasKey(of: recordedClass)
    let (key, wrappedKey) = try keys.makeFileKey(of: isUsable ? recordedClass : Self.fileClass, random: random)
    guard let size = FileCipher.encryptedSize(of: UInt64(file.byteCount)).flatMap(Int64.init(exactly:)) else {
      throw KeyhaulError(.overLimit, "\(file.path) is too large")
    }
    let cipher = try translatingErrors(in: file.path) { () throws(DataProtectionError) in
      try FileEncryptor(key: key.secret)
    }
    let digest = try send(file, byteCount: size, to: sink) { (chunk) throws(KeyhaulError) in
      try translatingErrors(in: file.path) { () throws(DataProtectionError) in
        if let chunk { try cipher.update(chunk) } else { try cipher.finish() }
      }
    }
    return RecordChange(key: wrappedKey, digest: digest)
  }

  private func decrypt(
    _ file: BackupFiles.File, _ identifier: String, to sink: any StoredFileSink
  ) throws(KeyhaulError) -> RecordChange {
    guard let size = plainByteCounts[identifier], let key = try fileKey(of: identifier) else {
      throw KeyhaulError(.damaged, "the manifest has no key for \(file.path)")
    }
    let cipher = try translatingErrors(in: file.path) { () throws(DataProtectionError) in try FileDecryptor(key: key) }
    let digest = try send(file, byteCount: size, to: sink) { (chunk) throws(KeyhaulError) in
      if let chunk {
        return try translatingErrors(in: file.path) { () throws(DataProtectionError) in try cipher.update(chunk) }
      }
      guard file.byteCount > 0 else { return [] }
      let end = try translatingErrors(in: file.path) { () throws(DataProtectionError) in try cipher.finish() }
      guard end.hasValidPadding else { throw damaged(file) }
      return end.bytes
    }
    return RecordChange(key: nil, digest: digest)
  }

  /// Writes a file through a cipher.
  ///
  /// - Parameter transform: Receives each chunk, and `nil` at the end.
  /// - Returns: The SHA-1 digest of the written bytes.
  private func send(
    _ file: BackupFiles.File, byteCount: Int64, to sink: any StoredFileSink,
    _ transform: (UnsafeRawBufferPointer?) throws(KeyhaulError) -> [UInt8]
  ) throws(KeyhaulError) -> [UInt8] {
    let digest = try translatingErrors(in: file.path) { () throws(DataProtectionError) in try DigestStream(.sha1) }
    func write(_ bytes: [UInt8]) throws(KeyhaulError) {
      try translatingErrors(in: file.path) { () throws(DataProtectionError) in try digest.update(bytes) }
      try sink.write(bytes)
    }
    let sealVerifier = try FileSealVerifier(of: file.path, in: archive)
    try sink.begin(
      target.name(of: file), byteCount: byteCount, modificationTime: target.modificationTime(of: file, in: archive))
    try file.forEachChunk { (chunk) throws(KeyhaulError) in
      try sealVerifier?.update(chunk)
      try write(try transform(chunk))
      try copyProgress.add(chunk.count)
    }
    try sealVerifier?.finish()
    try write(try transform(nil))
    try sink.end()
    return try translatingErrors(in: file.path) { () throws(DataProtectionError) in try digest.finish() }
  }

  /// Returns the key of a file, or `nil` if the file is not listed.
  private func fileKey(of identifier: String) throws(KeyhaulError) -> Secret? {
    guard let row = try list.archive(of: identifier) else { return nil }
    let part = archive.layout.storedPath(of: identifier)
    let record = try translatingErrors(in: "the record of \(part)") { () throws(FormatError) in
      try FileRecord(archive: row)
    }
    guard let field = record.encryptionKey?.serialized() else {
      throw KeyhaulError(.damaged, "the manifest has no key for \(part)")
    }
    return try archive.fileKey(field, of: part, keys: keys)
  }

  private struct DeferredMetadata {
    let database: [UInt8]
    let manifest: [UInt8]
    /// The key of the file list, or `nil` if the list is not encrypted.
    let key: SecretBox?
  }

  /// Returns the stored file list and manifest, which depend on all other files.
  private func deferredMetadata() throws(KeyhaulError) -> DeferredMetadata {
    let plaintext = try list.serialized()
    let editor = try ManifestEditor(archive.parts[.manifest] ?? [])
    guard encrypts else {
      let manifest = try editor.replacing(keybag: keybag, manifestKey: nil)
      return DeferredMetadata(database: plaintext, manifest: manifest, key: nil)
    }
    let (key, wrappedKey) = try keys.makeFileKey(of: Self.fileClass, random: random)
    let database = try translatingErrors(in: "the manifest database") { () throws(DataProtectionError) in
      try FileCipher.encrypt(plaintext, key: key.secret)
    }
    let manifest = try editor.replacing(keybag: keybag, manifestKey: wrappedKey)
    return DeferredMetadata(database: database, manifest: manifest, key: key)
  }

  private func makeSeal(of entries: [SealFile.Entry], _ key: SecretBox?) throws(KeyhaulError) -> SealFile {
    guard let key else { return try SealBuilder(manifestKey: nil).seal(of: entries) }
    return try SealBuilder(manifestKey: key.secret.copy()).seal(of: entries)
  }

  // MARK: Check

  /// Compares the new backup with the original, before the new one replaces it.
  func check(_ copy: BackupArchive, storedCount: Int) throws(KeyhaulError) {
    let changed = KeyhaulError(.changed, "the backup changed while it was being rewritten")
    guard copy.keybag == keybag, copy.isEncrypted == encrypts,
      try copy.storedFiles().count == storedCount - unlistedPaths.count
    else { throw changed }
    guard archive.hasKeychain else { return }
    // Both backups use the same class keys.
    guard try copy.keychainFile(with: keys).bytes == archive.keychainFile(with: keys).bytes else { throw changed }
  }
}
