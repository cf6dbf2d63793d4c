package import Basics
import KeychainFormats
import SystemPackage

/// Reads a backup's directory, every file relative to its open handle: a path that is swapped meanwhile changes
/// nothing.
package struct DirectorySource {
  package let system: FileSystem
  package let limits: ArchiveLimits

  package let storage: ManifestStorage

  /// Reads the files that this module knows; payloads stay where they are.
  package func read(_ directory: borrowing Descriptor) throws(BackupArchiveError) -> StoredParts {
    var parts = try readPropertyLists(directory)
    let hasManifest = parts.contains(.manifest)
    guard hasManifest || hasDatabase(directory) else {
      throw withoutManifest(directory, parts) ?? notABackup(directory)
    }
    parts[large: .database] = try readLarge(.database, in: directory)
    for part in StoredPart.journals { try readJournal(part, in: directory, to: &parts) }
    if !hasManifest, try !parts.hasPlaintextList() {
      throw withoutManifest(directory, parts) ?? notABackup(directory)
    }
    if parts.database == nil { parts[.oldDatabase] = try read(.oldDatabase, in: directory) }
    // Of one without a list it is known where its keychain would lie.
    let layout = parts.layout ?? .manifestDB
    parts[large: layout.keychainPart] = try readLarge(layout.keychainPart, in: directory)
    if !parts.contains(layout.keychainPart),
      let path = otherPath(of: StoredPart.keychainFileIdentifier, in: directory, layout)
    {
      parts[large: layout.keychainPart] = try readLarge(layout.keychainPart, at: path, in: directory)
      parts.isKeychainRenamed = true
    }
    do throws(BackupArchiveError) {
      parts[.seal] = try read(.seal, in: directory)
    } catch {
      // What the system did not give is no fault of the seal.
      guard error.category != .failed else { throw error }
      parts.sealFault = error
    }
    return parts
  }

  /// Reads what says about the backup as a whole, and no list of files.
  package func readPropertyLists(_ directory: borrowing Descriptor) throws(BackupArchiveError) -> StoredParts {
    var parts = StoredParts()
    parts[.manifest] = try read(.manifest, in: directory)
    for part in [StoredPart.status, .info] {
      do throws(BackupArchiveError) {
        parts[part] = try read(part, in: directory)
      } catch {
        guard error.code == .overLimit else { throw error }
        parts.unreadable.append(UnreadablePropertyList(part, error))
      }
    }
    return parts
  }

  private func read(_ part: StoredPart, in directory: borrowing Descriptor) throws(BackupArchiveError) -> [UInt8]? {
    guard let file = try open(part.path, in: directory) else { return nil }
    var bytes: [UInt8] = []
    try readWhole(file, limit: part.limit(limits)) { portion in
      // The size that the system states is no memory before it was held against the limit.
      if bytes.isEmpty { bytes.reserveCapacity(Int(clamping: file.byteCount)) }
      bytes.append(contentsOf: portion)
    }
    return bytes
  }

  private func readLarge(
    _ part: StoredPart, at path: String? = nil, in directory: borrowing Descriptor
  ) throws(BackupArchiveError) -> StoredBytes? {
    guard let file = try open(path ?? part.path, in: directory) else { return nil }
    var collector = try StoredBytesCollector(storage, system: system, expecting: file.byteCount)
    try readWhole(file, limit: part.limit(limits)) { (portion) throws(BackupArchiveError) in
      try collector.append(portion)
    }
    return try collector.finish()
  }

  /// Reads a log or a journal of SQLite's. What is none, and what is too long, is entered and not read; an empty one is none.
  private func readJournal(
    _ part: StoredPart, in directory: borrowing Descriptor, to parts: inout StoredParts
  ) throws(BackupArchiveError) {
    let status = try explained(part.path) { () throws(Errno) in
      try system.status(of: part.path.systemName, in: directory)
    }
    guard let status, status.kind != .file || status.byteCount > 0 else { return }
    guard status.kind == .file else {
      parts.unreadJournals[part] = (status.byteCount, "it is not a regular file")
      return
    }
    guard status.byteCount <= part.limit(limits) else {
      parts.unreadJournals[part] = (status.byteCount, "at most \(Amounts.bytes(part.limit(limits))) are read")
      return
    }
    parts[large: part] = try readLarge(part, in: directory)
  }

  /// Lends a payload's stored bytes in portions.
  ///
  /// - Returns: `false` where there is none.
  package func readPayload(
    _ path: String, in directory: borrowing Descriptor,
    portion: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) -> Bool {
    guard let file = try open(path, in: directory) else { return false }
    try readWhole(file, limit: Int(clamping: limits.entryByteCount), portion)
    return true
  }

  /// A regular file that is open for reading.
  private struct OpenFile: ~Copyable {
    let path: String
    let descriptor: Descriptor
    let byteCount: Int64
  }

  /// Opens a regular file of the backup, one or two names deep; `nil` where nothing is there.
  private func open(_ path: String, in directory: borrowing Descriptor) throws(BackupArchiveError) -> OpenFile? {
    let names = path.split(separator: "/").map(String.init)
    guard names.count == 2 else { return try open(path, named: path, in: directory) }
    let inner = try present(path) { () throws(Errno) in
      try system.openDirectory(names[0].systemName, in: directory)
    }
    guard let inner else { return nil }
    return try open(path, named: names[1], in: inner)
  }

  private func open(
    _ path: String, named name: String, in directory: borrowing Descriptor
  ) throws(BackupArchiveError) -> OpenFile? {
    let file = try present(path) { () throws(Errno) in try system.openForReading(name, in: directory) }
    guard let file else { return nil }
    let raw = file.raw
    let status = try explained(path) { () throws(Errno) in try system.status(of: raw) }
    guard status.kind == .file else { throw BackupArchiveError(.hostile, "\(path) is not a regular file") }
    return OpenFile(path: path, descriptor: file, byteCount: status.byteCount)
  }

  /// What `body` opens, or `nil` where nothing is there.
  private func present(
    _ path: String, _ body: () throws(Errno) -> Descriptor
  ) throws(BackupArchiveError) -> Descriptor? {
    do throws(Errno) {
      return try body()
    } catch {
      if error == .noSuchFileOrDirectory { return nil }
      throw irregular(path, error)
    }
  }

  private func explained<Value>(
    _ path: String, _ body: () throws(Errno) -> Value
  ) throws(BackupArchiveError) -> Value {
    do throws(Errno) {
      return try body()
    } catch {
      throw irregular(path, error)
    }
  }

  /// ELOOP and ENOTDIR are how a refused link shows itself; a socket gives ENXIO.
  private func irregular(_ path: String, _ failure: Errno) -> BackupArchiveError {
    switch failure {
    case .tooManySymbolicLinkLevels, .notDirectory:
      BackupArchiveError(.hostile, "\(path) is behind a link or is not a regular file")
    case .noSuchAddressOrDevice: BackupArchiveError(.hostile, "\(path) is not a regular file")
    default: BackupArchiveError(.unreadable, "\(path): \(failure.reason)")
    }
  }

  private func readWhole(
    _ file: borrowing OpenFile, limit: Int, _ portion: (UnsafeRawBufferPointer) throws(BackupArchiveError) -> Void
  ) throws(BackupArchiveError) {
    let (path, raw) = (file.path, file.descriptor.raw)
    guard file.byteCount <= limit else {
      throw BackupArchiveError(
        .overLimit, "\(path) has \(Amounts.grouped(file.byteCount)) bytes, over \(Amounts.grouped(Int64(limit)))")
    }
    // Most files are small, and a large buffer for each costs the system more than reading them.
    let portionCount = max(4_096, min(Int(clamping: file.byteCount), DescriptorFeed.chunkByteCount))
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: portionCount, alignment: 16)
    defer { buffer.deallocate() }
    var total = 0
    while true {
      let count = try explained(path) { () throws(Errno) in try system.read(raw, into: buffer) }
      if count == 0 { return }
      total += count
      guard total <= limit else {
        throw BackupArchiveError(
          .overLimit, "\(path) grew beyond \(Amounts.grouped(Int64(limit))) bytes while it was being read")
      }
      try portion(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }
}
