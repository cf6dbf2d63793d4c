package import Basics
import SystemPackage

/// Reads a backup's directory through its open handle, even if the path is replaced in the meantime.
package struct DirectorySource {
  package let system: FileSystem
  package let limits: BackupLimits
  /// The storage for a large manifest database and keychain file.
  package let storage: ManifestStorage

  /// Reads the metadata files and the keychain file. Other payloads are not read.
  package func read(_ directory: borrowing OwnedFileDescriptor) throws(KeyhaulError) -> MetadataFiles {
    var parts = try readPropertyLists(directory)
    let hasManifest = parts.contains(.manifest)
    guard hasManifest || hasPlaintextDatabase(directory) else {
      throw missingManifestError(directory, parts) ?? notABackup(directory)
    }
    parts[large: .database] = try readLarge(.database, in: directory)
    for part in MetadataFile.journals { try readJournal(part, in: directory, to: &parts) }
    if !hasManifest, try !parts.hasPlaintextList() {
      throw missingManifestError(directory, parts) ?? notABackup(directory)
    }
    if parts.database == nil { parts[.oldDatabase] = try read(.oldDatabase, in: directory) }
    try readKeychain(in: directory, to: &parts)
    do throws(KeyhaulError) {
      parts[.seal] = try read(.seal, in: directory)
    } catch {
      // A system error is not a problem of the seal.
      guard error.category != .failed else { throw error }
      parts.sealFault = error
    }
    return parts
  }

  /// Reads the keychain file from its usual path, or from an unusual one.
  private func readKeychain(
    in directory: borrowing OwnedFileDescriptor, to parts: inout MetadataFiles
  ) throws(KeyhaulError) {
    // In a backup without a file list, the keychain file is expected at the path of the newer layout.
    let layout = parts.layout ?? .manifestDB
    parts[large: layout.keychainPart] = try readLarge(layout.keychainPart, in: directory)
    if !parts.contains(layout.keychainPart),
      let path = unusualPath(of: MetadataFile.keychainFileIdentifier, in: directory, layout)
    {
      parts[large: layout.keychainPart] = try readLarge(layout.keychainPart, at: path, in: directory)
      parts.isKeychainRenamed = true
    }
  }

  /// Reads only the property lists. A `Status.plist` or `Info.plist` above the limit is recorded as unreadable.
  package func readPropertyLists(_ directory: borrowing OwnedFileDescriptor) throws(KeyhaulError) -> MetadataFiles {
    var parts = MetadataFiles()
    parts[.manifest] = try read(.manifest, in: directory)
    for part in [MetadataFile.status, .info] {
      do throws(KeyhaulError) {
        parts[part] = try read(part, in: directory)
      } catch {
        guard error.code == .overLimit else { throw error }
        parts.unreadable.append(UnreadablePropertyList(part, error))
      }
    }
    return parts
  }

  private func read(_ part: MetadataFile, in directory: borrowing OwnedFileDescriptor) throws(KeyhaulError) -> [UInt8]?
  {
    guard let file = try open(part.path, in: directory) else { return nil }
    var bytes: [UInt8] = []
    try readAll(of: file, limit: part.limit(limits)) { chunk in
      // `readAll` has compared the size with the limit.
      if bytes.isEmpty { bytes.reserveCapacity(Int(clamping: file.byteCount)) }
      bytes.append(contentsOf: chunk)
    }
    return bytes
  }

  /// Reads a metadata file that may be too large for memory.
  ///
  /// - Parameter path: The path, or `nil` to use the usual path.
  private func readLarge(
    _ part: MetadataFile, at path: String? = nil, in directory: borrowing OwnedFileDescriptor
  ) throws(KeyhaulError) -> SpooledData? {
    guard let file = try open(path ?? part.path, in: directory) else { return nil }
    var builder = try SpooledDataBuilder(storage, system: system, expecting: file.byteCount)
    try readAll(of: file, limit: part.limit(limits)) { (chunk) throws(KeyhaulError) in
      try builder.append(chunk)
    }
    return try builder.finish()
  }

  /// Reads an SQLite log or journal. A file that is not regular or exceeds the limit is recorded but not read. An empty
  /// file is ignored.
  private func readJournal(
    _ part: MetadataFile, in directory: borrowing OwnedFileDescriptor, to parts: inout MetadataFiles
  ) throws(KeyhaulError) {
    let status = try translatingErrors(in: part.path) { () throws(Errno) in
      try system.status(of: part.path.systemName, in: directory)
    }
    guard let status, status.kind != .file || status.byteCount > 0 else { return }
    guard status.kind == .file else {
      parts.unreadJournals[part] = (status.byteCount, "it is not a regular file")
      return
    }
    guard status.byteCount <= part.limit(limits) else {
      parts.unreadJournals[part] = (
        status.byteCount, "Keyhaul reads at most \(HumanReadable.bytes(part.limit(limits)))"
      )
      return
    }
    parts[large: part] = try readLarge(part, in: directory)
  }

  /// Passes the stored bytes of a payload to a closure in chunks.
  ///
  /// - Returns: `false` if the payload does not exist.
  package func readPayload(
    _ path: String, in directory: borrowing OwnedFileDescriptor,
    chunk: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> Bool {
    guard let file = try open(path, in: directory) else { return false }
    try readAll(of: file, limit: Int(clamping: limits.entryByteCount), chunk)
    return true
  }

  /// Returns whether a regular file exists at a path of one or two components.
  func hasFile(_ path: String, in directory: borrowing OwnedFileDescriptor) -> Bool {
    do {
      guard try open(path, in: directory) != nil else { return false }
      return true
    } catch {
      return false
    }
  }

  /// A regular file that is open for reading.
  private struct OpenFile: ~Copyable {
    let path: String
    let descriptor: OwnedFileDescriptor
    let byteCount: Int64
  }

  /// Opens a regular file of the backup with a path of one or two components, or returns `nil` if it does not exist.
  private func open(_ path: String, in directory: borrowing OwnedFileDescriptor) throws(KeyhaulError) -> OpenFile? {
    let names = path.split(separator: "/").map(String.init)
    guard names.count == 2 else { return try openFile(path, as: path, in: directory) }
    let payloadDirectory = try ifExists(path) { () throws(Errno) in
      try system.openDirectory(names[0].systemName, in: directory)
    }
    guard let payloadDirectory else { return nil }
    return try openFile(names[1], as: path, in: payloadDirectory)
  }

  /// Opens a regular file in a directory.
  ///
  /// - Parameters:
  ///   - name: The name in the directory.
  ///   - path: The path in the backup, for errors.
  private func openFile(
    _ name: String, as path: String, in directory: borrowing OwnedFileDescriptor
  ) throws(KeyhaulError) -> OpenFile? {
    let file = try ifExists(path) { () throws(Errno) in try system.openForReading(name, in: directory) }
    guard let file else { return nil }
    let raw = file.raw
    let status = try translatingErrors(in: path) { () throws(Errno) in try system.status(of: raw) }
    guard status.kind == .file else { throw KeyhaulError(.hostile, "\(path) is not a regular file") }
    return OpenFile(path: path, descriptor: file, byteCount: status.byteCount)
  }

  /// Opens a file or directory with a closure, or returns `nil` if it does not exist.
  private func ifExists(
    _ path: String, _ open: () throws(Errno) -> OwnedFileDescriptor
  ) throws(KeyhaulError) -> OwnedFileDescriptor? {
    do throws(Errno) {
      return try open()
    } catch {
      if error == .noSuchFileOrDirectory { return nil }
      throw self.error(for: path, error)
    }
  }

  /// Runs a system call for a path and converts its error.
  private func translatingErrors<Value>(
    in path: String, _ call: () throws(Errno) -> Value
  ) throws(KeyhaulError) -> Value {
    do throws(Errno) {
      return try call()
    } catch {
      throw self.error(for: path, error)
    }
  }

  /// Returns the error for a file that cannot be opened. The system refuses a link with ELOOP or ENOTDIR, and a socket
  /// with ENXIO.
  private func error(for path: String, _ errno: Errno) -> KeyhaulError {
    switch errno {
    case .tooManySymbolicLinkLevels, .notDirectory:
      KeyhaulError(.hostile, "\(path) is behind a link or is not a regular file")
    case .noSuchAddressOrDevice: KeyhaulError(.hostile, "\(path) is not a regular file")
    default: KeyhaulError(.unreadable, "\(path): \(errno.reason)", of: errno)
    }
  }

  /// Passes the content of a file to a closure in chunks.
  ///
  /// - Throws: `.overLimit` if the file is larger than the limit.
  private func readAll(
    of file: borrowing OpenFile, limit: Int, _ body: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    let (path, raw) = (file.path, file.descriptor.raw)
    guard file.byteCount <= limit else {
      throw KeyhaulError(
        .overLimit,
        "\(path) has \(HumanReadable.grouped(file.byteCount)) bytes (limit: \(HumanReadable.grouped(Int64(limit))))")
    }
    // Most files are small, and allocating a large buffer for each would take longer than reading them.
    let bufferByteCount = max(
      Self.minimumBufferByteCount, min(Int(clamping: file.byteCount), FileDescriptorSource.chunkByteCount))
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bufferByteCount, alignment: 16)
    defer { buffer.deallocate() }
    var totalByteCount = 0
    while true {
      let count = try translatingErrors(in: path) { () throws(Errno) in try system.read(raw, into: buffer) }
      if count == 0 { return }
      totalByteCount += count
      guard totalByteCount <= limit else {
        throw KeyhaulError(
          .overLimit, "\(path) grew beyond \(HumanReadable.grouped(Int64(limit))) bytes while it was being read")
      }
      try body(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }

  private static let minimumBufferByteCount = 4_096
}
