import Basics
import KeychainCrypto
import KeychainFormats

/// Decrypts a backup's files and its file list.
final class BackupDecryptor {
  let copyProgress: CopyProgress
  private(set) var fileCount = 0
  /// The plaintext size of the written files.
  private(set) var writtenByteCount: Int64 = 0
  private(set) var decryptedCount = 0
  /// Files that are not part of the backup, and payloads that are not listed.
  private(set) var unrelatedFiles: [String] = []
  private(set) var faults: [DecryptedBackup.Fault] = []
  private(set) var rowWithoutIdentifierCount = 0
  /// The files whose content does not match a digest in the file list or the seal.
  private(set) var differingFiles: [ListedFile] = []
  private let archive: BackupArchive
  private let keys: ClassKeys
  private let list: ManifestWorkingCopy
  /// The readable payloads, which are determined before writing, because an entry begins with its size.
  private var readableFiles: [String: ReadableFile] = [:]

  private struct ReadableFile {
    let file: ListedFile
    let plainByteCount: Int64
    /// The new digest of the row, or `nil` to keep the current one.
    let digest: [UInt8]?
  }

  init(
    _ archive: BackupArchive, keys: ClassKeys, copyProgress: CopyProgress
  ) throws(KeyhaulError) {
    list = try ManifestWorkingCopy(try archive.databaseBytes(with: keys))
    self.archive = archive
    self.keys = keys
    self.copyProgress = copyProgress
  }

  /// Reads all files, because invalid padding would be detected too late while writing.
  func readAll(_ stored: StoredPayloads) throws(KeyhaulError) {
    let list = try archive.fileList(with: keys)
    let index = try indexFiles(of: list, stored)
    let reader = try list.reader()
    let seal = try SealVerifier(archive)
    try archive.forEachPayload(of: stored) { (payload) throws(KeyhaulError) in
      guard let location = index.locations(of: payload.fileIdentifier).first, let file = try reader.file(at: location)
      else {
        return
      }
      let hasher = seal == nil ? nil : try PayloadHasher()
      do throws(KeyhaulError) {
        try read(payload, as: file, hashedBy: hasher, comparedWith: seal)
      } catch {
        guard error.code != .interrupted, !error.isResourceShortage else { throw error }
        faults.append(.init(fileIdentifier: payload.fileIdentifier, error: error))
      }
    }
  }

  /// Returns the locations of the listed files, and adds a fault for each missing payload.
  private func indexFiles(of list: FileList, _ stored: StoredPayloads) throws(KeyhaulError) -> FileIndex {
    var index = FileIndex()
    let listing = try list.listing(only: .file) { (file, location) throws(KeyhaulError) in
      index.add(file, at: location)
      guard stored.lacks(file) else { return }
      let name = quoted("\(file.domain ?? "")/\(file.relativePath ?? "")")
      let error = KeyhaulError(.payloadMissing, "\(name) is missing")
      faults.append(.init(fileIdentifier: file.fileIdentifier, error: error))
    }
    rowWithoutIdentifierCount = listing.rowWithoutIdentifierCount
    return index
  }

  /// Reads a payload, and compares it with the digest in the file list and with the seal.
  private func read(
    _ payload: StoredPayload, as file: ListedFile, hashedBy hasher: PayloadHasher?, comparedWith seal: SealVerifier?
  ) throws(KeyhaulError) {
    let (readableFile, matchesList) = try read(payload.observed(by: hasher), file)
    readableFiles[payload.fileIdentifier] = readableFile
    let path = archive.layout.storedPath(of: payload.fileIdentifier)
    let entry = try hasher?.entry(of: payload, at: path)
    let violation = entry.flatMap { seal?.compare($0) }
    if !matchesList || violation != nil { differingFiles.append(file) }
  }

  /// Reads a payload.
  ///
  /// - Returns: The file, and whether its content matches the digest in the file list. A file without a digest matches.
  private func read(
    _ payload: StoredPayload, _ file: ListedFile
  ) throws(KeyhaulError) -> (ReadableFile, matchesList: Bool) {
    let scanner = try PayloadScanner(of: file, in: archive, with: keys)
    let scan = try scanner.run(payload) { (_) throws(KeyhaulError) in
      // Bytes count as progress only when they are read for writing.
      do throws(KeyhaulError) { try copyProgress.add(0) } catch {
        throw KeyhaulError(.interrupted, "it was stopped")
      }
    }
    guard scan.hasValidPadding else {
      throw KeyhaulError(.damaged, "\(file.fileIdentifier) does not end with valid padding")
    }
    let recordedDigest = scanner.record?.digest
    let readableFile = ReadableFile(
      file: file, plainByteCount: scan.plainByteCount,
      digest: recordedDigest == scan.storedSHA1 ? scan.plainSHA1 : nil)
    return (readableFile, matchesList: scan.matches(recordedDigest) != false)
  }

  // MARK: Writing

  func send(_ files: BackupFiles, to target: any StoredFileSink) throws(KeyhaulError) {
    let sink = try SealingSink(target, layout: archive.layout)
    var time: Int64 = 0
    var writtenIdentifiers: Set<String> = []
    let unreadableIdentifiers = Set(faults.map(\.fileIdentifier))
    unrelatedFiles += try files.forEachFile { (file) throws(KeyhaulError) in
      guard file.isPartOfBackup, !file.isLeftover else { return unrelatedFiles.append(file.name.shown) }
      if let identifier = file.payloadIdentifier {
        if let readableFile = readableFiles[identifier], writtenIdentifiers.insert(identifier).inserted {
          try decrypt(file, readableFile, to: sink)
        } else if !unreadableIdentifiers.contains(identifier) {
          unrelatedFiles.append(file.path)
        }
      } else if file.path == MetadataFile.manifest.path || file.path == MetadataFile.database.path {
        time = max(time, file.modificationTime)
      } else {
        try copyMetadata(file, to: sink)
      }
    }
    let database = try list.serialized()
    let manifest = try ManifestEditor(archive.parts[.manifest] ?? []).decrypted()
    try sink.add(EntryName(MetadataFile.database.path), database, modificationTime: time)
    try sink.add(EntryName(MetadataFile.manifest.path), manifest, modificationTime: time)
    let seal = try SealBuilder(manifestKey: nil).seal(of: sink.entries)
    try sink.add(EntryName(MetadataFile.seal.path), seal.bytes, modificationTime: time)
    // The file list, the manifest and the seal.
    fileCount += 3
    writtenByteCount += Int64(database.count + manifest.count + seal.bytes.count)
  }

  /// Copies a property list. Journals are not copied, because the new file list contains their changes. The seal is not
  /// copied, because the copy gets a new seal.
  private func copyMetadata(_ file: BackupFiles.File, to sink: any StoredFileSink) throws(KeyhaulError) {
    if file.isJournal {
      let isApplied = file.path == archive.appliedJournalPath
      if !isApplied, file.byteCount > 0 { unrelatedFiles.append(file.path) }
      return
    }
    guard file.path != MetadataFile.seal.path else { return }
    try file.copy(to: sink, as: EntryName(file.path), modificationTime: file.modificationTime, copyProgress)
    fileCount += 1
    writtenByteCount += file.byteCount
  }

  private func decrypt(
    _ file: BackupFiles.File, _ readableFile: ReadableFile, to sink: any StoredFileSink
  ) throws(KeyhaulError) {
    let cipher = try decryptor(of: readableFile.file)
    var byteCount: Int64 = 0
    func write(_ plaintext: [UInt8]) throws(KeyhaulError) {
      byteCount += Int64(plaintext.count)
      try sink.write(plaintext)
    }
    let changed = KeyhaulError(.changed, "the backup changed while it was being copied")
    try sink.begin(
      EntryName(file.path), byteCount: readableFile.plainByteCount, modificationTime: file.modificationTime)
    try file.forEachChunk { (chunk) throws(KeyhaulError) in
      try write(
        try translatingErrors(in: file.path) { () throws(DataProtectionError) in try cipher.update(chunk) })
      guard byteCount <= readableFile.plainByteCount else { throw changed }
      try copyProgress.add(chunk.count)
    }
    if file.byteCount > 0 {
      try write(
        try translatingErrors(in: file.path) { () throws(DataProtectionError) in try cipher.finish() }.bytes)
    }
    guard byteCount == readableFile.plainByteCount else { throw changed }
    try sink.end()
    try updateRow(of: readableFile)
    fileCount += 1
    decryptedCount += 1
    writtenByteCount += byteCount
  }

  private func decryptor(of file: ListedFile) throws(KeyhaulError) -> FileDecryptor {
    guard let field = try file.record()?.encryptionKey?.serialized() else {
      throw KeyhaulError(.damaged, "the manifest has no key for \(file.fileIdentifier)")
    }
    let key = try archive.fileKey(field, of: file.fileIdentifier, keys: keys)
    return try translatingErrors(in: file.fileIdentifier) { () throws(DataProtectionError) in
      try FileDecryptor(key: key)
    }
  }

  /// Updates the row of a decrypted file.
  private func updateRow(of readableFile: ReadableFile) throws(KeyhaulError) {
    let identifier = readableFile.file.fileIdentifier
    guard let oldRecord = try list.archive(of: identifier) else { return }
    let newRecord = try translatingErrors(in: "the record of \(identifier)") { () throws(FormatError) in
      try FileRecord.replacing(encryptionKey: nil, digest: readableFile.digest, in: oldRecord)
    }
    try list.replaceArchive(of: identifier, with: newRecord)
  }

  // MARK: Check

  /// Compares the copy with the original. Throws `.changed` if they do not correspond.
  func check(_ copy: BackupArchive) throws(KeyhaulError) {
    let changed = KeyhaulError(.changed, "the backup changed while it was being copied")
    guard copy.keybag == archive.keybag, copy.manifest.isDecryptedCopy, try copy.storedFiles().count == decryptedCount
    else { throw changed }
    guard readableFiles[MetadataFile.keychainFileIdentifier] != nil else { return }
    guard try copy.keychainFile(with: keys).bytes == archive.keychainFile(with: keys).bytes else { throw changed }
  }
}
