package import Basics
import KeychainFormats
import SystemPackage

/// Reads a backup's directory relative to its open handle, so that replacing the path has no effect.
package struct DirectorySource {
  package let system: FileSystem
  package let limits: BackupLimits
  /// The storage for a large manifest database and keychain file.
  package let storage: ManifestStorage

  /// Reads the metadata files. Payloads are not read.
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

  /// Reads the keychain file, possibly under an unusual name.
  private func readKeychain(
    in directory: borrowing OwnedFileDescriptor, to parts: inout MetadataFiles
  ) throws(KeyhaulError) {
    // In a backup without a list of files, the keychain file is expected at the path of the newer layout.
    let layout = parts.layout ?? .manifestDB
    parts[large: layout.keychainPart] = try readLarge(layout.keychainPart, in: directory)
    if !parts.contains(layout.keychainPart),
      let path = otherPath(of: MetadataFile.keychainFileIdentifier, in: directory, layout)
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
    try readAll(of: file, limit: part.limit(limits)) { portion in
      // `readAll` has compared the size with the limit.
      if bytes.isEmpty { bytes.reserveCapacity(Int(clamping: file.byteCount)) }
      bytes.append(contentsOf: portion)
    }
    return bytes
  }

  /// Reads a metadata file that may be too large for memory.
  ///
  /// - Parameter path: The path, or `nil` if it is the usual one.
  private func readLarge(
    _ part: MetadataFile, at path: String? = nil, in directory: borrowing OwnedFileDescriptor
  ) throws(KeyhaulError) -> SpooledData? {
    guard let file = try open(path ?? part.path, in: directory) else { return nil }
    var builder = try SpooledDataBuilder(storage, system: system, expecting: file.byteCount)
    try readAll(of: file, limit: part.limit(limits)) { (portion) throws(KeyhaulError) in
      try builder.append(portion)
    }
    return try builder.finish()
  }

  /// Reads an SQLite log or journal. Irregular and large files are recorded but not read, and empty ones are ignored.
  private func readJournal(
    _ part: MetadataFile, in directory: borrowing OwnedFileDescriptor, to parts: inout MetadataFiles
  ) throws(KeyhaulError) {
    let status = try explained(part.path) { () throws(Errno) in
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

  /// Passes the stored bytes of a payload to a closure in portions.
  ///
  /// - Returns: `false` if the payload does not exist.
  package func readPayload(
    _ path: String, in directory: borrowing OwnedFileDescriptor,
    portion: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> Bool {
    guard let file = try open(path, in: directory) else { return false }
    try readAll(of: file, limit: Int(clamping: limits.entryByteCount), portion)
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
    let status = try explained(path) { () throws(Errno) in try system.status(of: raw) }
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
  private func explained<Value>(
    _ path: String, _ call: () throws(Errno) -> Value
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

  /// Passes the content of a file to a closure in portions.
  ///
  /// - Throws: `.overLimit` if the file is larger than the limit.
  private func readAll(
    of file: borrowing OpenFile, limit: Int, _ portion: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
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
      let count = try explained(path) { () throws(Errno) in try system.read(raw, into: buffer) }
      if count == 0 { return }
      totalByteCount += count
      guard totalByteCount <= limit else {
        throw KeyhaulError(
          .overLimit, "\(path) grew beyond \(HumanReadable.grouped(Int64(limit))) bytes while it was being read")
      }
      try portion(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }

  private static let minimumBufferByteCount = 4_096
}

// MARK: Hints for directories that are not backups
extension DirectorySource {
  /// The maximum number of names that are examined in a directory and each of its directories.
  private static let maximumNameCount = 200
  /// The maximum number of names in a hint.
  private static let maximumCandidateCount = 3

  /// Returns the error for a directory without a manifest, with hints where a backup may be.
  func notABackup(_ directory: borrowing OwnedFileDescriptor) -> KeyhaulError {
    let nearby = nearbyEntries(in: directory)
    var clauses = ["it has no \(MetadataFile.manifest.path)"]
    if !nearby.backups.isEmpty { clauses.append("\(Self.listed(nearby.backups)) in it may be a backup") }
    if !nearby.backupFolders.isEmpty { clauses.append("backups are in \(Self.listed(nearby.backupFolders))") }
    if let link = nearby.firstDanglingLink {
      clauses.append("the link \(quoted(link.name)) points to \(link.target), which does not exist")
    }
    return KeyhaulError(.notABackup, clauses.joined(separator: "; "))
  }

  private static func listed(_ names: [String]) -> String {
    let shown = names.prefix(maximumCandidateCount).map(quoted)
    return names.count > shown.count
      ? shown.joined(separator: ", ") + ", ..." : HumanReadable.list(shown, conjunction: "or")
  }

  /// The entries of a directory that may lead to a backup.
  private struct NearbyEntries {
    /// The names of backups and container files, or of links to them.
    var backups: [String] = []
    /// The names of directories with backups, such as `Backup` in `MobileSync`, or of links to them.
    var backupFolders: [String] = []
    var firstDanglingLink: (name: String, target: String)?
  }

  /// Finds entries that may lead to a backup. Unreadable entries are skipped.
  private func nearbyEntries(in directory: borrowing OwnedFileDescriptor) -> NearbyEntries {
    var nearby = NearbyEntries()
    for name in names(in: directory) {
      switch kind(of: name, in: directory) {
      case .file: if isContainer(name, in: directory) { nearby.backups.append(name) }
      case .directory, .link:
        if hasManifest(name, in: directory) {
          nearby.backups.append(name)
        } else if containsBackups(name, in: directory) {
          nearby.backupFolders.append(name)
        } else if nearby.firstDanglingLink == nil, let target = missingTarget(of: name, in: directory) {
          nearby.firstDanglingLink = (name, target)
        }
      case .pipe, .other, nil: continue
      }
    }
    return nearby
  }

  /// Returns the quoted target of a dangling link, otherwise `nil`.
  private func missingTarget(of name: String, in directory: borrowing OwnedFileDescriptor) -> String? {
    guard let target = try? system.linkTarget(of: name, in: directory) else { return nil }
    do throws(Errno) {
      _ = try system.openLinkedDirectory(name.systemName, in: directory)
      return nil
    } catch {
      return error.isNotFound ? quoted(target) : nil
    }
  }

  private func names(in directory: borrowing OwnedFileDescriptor) -> [String] {
    let all = (try? system.names(in: directory)) ?? []
    return all.prefix(Self.maximumNameCount).compactMap(\.validText).sorted()
  }

  private func kind(of name: String, in directory: borrowing OwnedFileDescriptor) -> FileStatus.Kind? {
    (try? system.status(of: name.systemName, in: directory))?.kind
  }

  /// Returns whether a file begins like a container file.
  private func isContainer(_ name: String, in directory: borrowing OwnedFileDescriptor) -> Bool {
    do {
      return try hasContainerFormat(try system.openForReading(name, in: directory))
    } catch {
      return false
    }
  }

  private func hasContainerFormat(_ file: borrowing OwnedFileDescriptor) throws(KeyhaulError) -> Bool {
    _ = try ContainerFormat(try FileDescriptorSource(descriptor: file.raw, system: system))
    return true
  }

  private func hasManifest(_ name: String, in directory: borrowing OwnedFileDescriptor) -> Bool {
    do {
      return try hasManifest(try system.openLinkedDirectory(name.systemName, in: directory))
    } catch {
      return false
    }
  }

  private func hasManifest(_ directory: borrowing OwnedFileDescriptor) throws(Errno) -> Bool {
    try system.status(of: MetadataFile.manifest.path.systemName, in: directory)?.kind == .file
  }

  private func containsBackups(_ name: String, in directory: borrowing OwnedFileDescriptor) -> Bool {
    do {
      return containsBackup(try system.openLinkedDirectory(name.systemName, in: directory))
    } catch {
      return false
    }
  }

  private func containsBackup(_ directory: borrowing OwnedFileDescriptor) -> Bool {
    for name in names(in: directory) where hasManifest(name, in: directory) { return true }
    return false
  }
}

// MARK: Payloads
extension DirectorySource {
  /// Lists the payloads: of the newer layout in up to 256 directories, of the older layout in the backup's directory.
  ///
  /// Payloads of the other layout's path or with upper-case digits are candidates for payloads that are missing under
  /// their usual names.
  ///
  /// - Parameter identifier: The only payload to find, or `nil` to list all.
  package func payloads(
    of directory: borrowing OwnedFileDescriptor, layout: BackupLayout, only identifier: String? = nil
  ) throws(KeyhaulError) -> StoredPayloads {
    var payloads = StoredPayloads()
    do {
      let names = try system.names(in: directory)
      let hasBothLists = BackupLayout.allCases.allSatisfy { layout in
        names.contains { $0.text == layout.listPart.path }
      }
      let search = Search(layout: layout, onlyIdentifier: identifier, hasBothLists: hasBothLists)
      try add(names, of: directory, named: "", search, to: &payloads)
      for name in names where BackupPath.isPayloadDirectory(name.text) {
        let directoryName = name.text
        if let identifier, !identifier.hasPrefix(directoryName.lowercased()) { continue }
        guard try system.status(of: name, in: directory)?.kind == .directory else { continue }
        let payloadDirectory = try system.openDirectory(name, in: directory)
        let payloadNames = try system.names(in: payloadDirectory)
        try add(payloadNames, of: payloadDirectory, named: directoryName, search, to: &payloads)
      }
    } catch {
      throw KeyhaulError(.unreadable, error.reason, of: error)
    }
    payloads.resolveCandidates()
    return payloads
  }

  /// Returns the path of a payload that is missing under its usual name, or `nil` if it is not found or the names
  /// cannot be listed.
  func otherPath(of identifier: String, in directory: borrowing OwnedFileDescriptor, _ layout: BackupLayout) -> String?
  {
    (try? payloads(of: directory, layout: layout, only: identifier))?.otherPath(of: identifier)
  }

  private struct Search {
    let layout: BackupLayout
    /// The only payload to find, or `nil` to list all.
    let onlyIdentifier: String?
    /// Whether the backup has lists of both layouts. An updated device may leave its old list with the payloads.
    let hasBothLists: Bool
  }

  /// Adds the payloads of a directory.
  ///
  /// - Parameter directoryName: The name of the directory in the backup, empty for the backup's own directory.
  private func add(
    _ names: [FileSystem.Name], of directory: borrowing OwnedFileDescriptor, named directoryName: String,
    _ search: Search,
    to payloads: inout StoredPayloads
  ) throws(Errno) {
    let prefix = directoryName.lowercased()
    let directoryLayout: BackupLayout = directoryName.isEmpty ? .mbdb : .manifestDB
    for name in names {
      let text = name.text
      guard text.utf8.count == 40 else { continue }
      let isLowercase = isFileIdentifier(text)
      let identifier = isLowercase ? text : text.lowercased()
      guard isLowercase || isFileIdentifier(identifier), identifier.hasPrefix(prefix) else { continue }
      if let onlyIdentifier = search.onlyIdentifier, onlyIdentifier != identifier { continue }
      let isUsualInItsLayout = isLowercase && directoryName == prefix
      let isUsual = isUsualInItsLayout && directoryLayout == search.layout
      // The payload belongs to the list of the other layout.
      if isUsualInItsLayout, !isUsual, search.hasBothLists { continue }
      guard let status = try system.status(of: name, in: directory) else { continue }
      switch (isUsual, status.kind) {
      case (true, .file): payloads.add(text, byteCount: status.byteCount)
      case (true, _): payloads.addIrregular(text)
      case (false, .file):
        let path = directoryName.isEmpty ? text : "\(directoryName)/\(text)"
        payloads.addCandidate(path, for: identifier, byteCount: status.byteCount)
      case (false, _): break
      }
    }
  }
}

// MARK: Backups without a manifest
extension DirectorySource {
  /// The name of the directory that a device uses until the backup is finished.
  ///
  /// Source: libimobiledevice, `idevicebackup2.c`.
  private static let snapshotName = "Snapshot"

  /// Returns the error for a partial backup without a manifest, or `nil` if the directory does not seem to be one.
  ///
  /// - Parameter propertyLists: The property lists that could be read.
  func missingManifestError(_ directory: borrowing OwnedFileDescriptor, _ propertyLists: MetadataFiles) -> KeyhaulError?
  {
    let payloadCount = payloadCount(in: directory)
    let snapshotPayloadCount = snapshotPayloadCount(in: directory)
    // One property list is not enough, because apps also contain an Info.plist.
    switch (propertyLists.contains(.info), propertyLists.contains(.status)) {
    case (true, true): break
    case (true, false), (false, true): guard payloadCount > 0 || snapshotPayloadCount != nil else { return nil }
    case (false, false): return nil
    }
    let status = propertyLists[.status].map { bytes in try? BackupStatus(parsing: bytes) }
    var clauses = ["it has no \(MetadataFile.manifest.path), which is needed to get its keys"]
    if let count = snapshotPayloadCount {
      clauses.append("its \(Self.snapshotName) folder remains, with \(HumanReadable.count(count, "payload"))")
    }
    if let bytes = propertyLists[.info] { clauses.append(Self.describe(info: bytes)) }
    clauses.append(Self.describe(status))
    clauses.append("\(HumanReadable.count(payloadCount, "payload")) \(payloadCount == 1 ? "is" : "are") in it")
    let isFinished = status??.isFinished == true
    return KeyhaulError(isFinished ? .damaged : .manifestMissing, clauses.joined(separator: "; "))
  }

  /// Returns the number of payloads in the snapshot directory, or `nil` if there is no such directory.
  private func snapshotPayloadCount(in directory: borrowing OwnedFileDescriptor) -> Int? {
    guard let snapshot = try? system.openDirectory(Self.snapshotName.systemName, in: directory) else { return nil }
    return payloadCount(in: snapshot)
  }

  /// Returns whether `Manifest.db` begins like an unencrypted database.
  func hasPlaintextDatabase(_ directory: borrowing OwnedFileDescriptor) -> Bool {
    do {
      let file = try system.openForReading(MetadataFile.database.path, in: directory)
      guard try system.status(of: file.raw).kind == .file else { return false }
      let magic = DatabaseBytes.magic
      let start = try [UInt8](unsafeUninitializedCapacity: magic.count) { buffer, count in
        count = try system.read(file.raw, at: 0, into: UnsafeMutableRawBufferPointer(buffer))
      }
      return start == magic
    } catch {
      return false
    }
  }

  /// Returns the number of payloads, or 0 if they cannot be counted.
  private func payloadCount(in directory: borrowing OwnedFileDescriptor) -> Int {
    var identifiers: Set<String> = []
    for layout in BackupLayout.allCases {
      identifiers.formUnion((try? payloads(of: directory, layout: layout))?.fileIdentifiers() ?? [])
    }
    return identifiers.count
  }

  /// Describes the device in an `Info.plist`.
  private static func describe(info bytes: [UInt8]) -> String {
    let name = MetadataFile.info.path
    guard let device = (try? InfoPlist(parsing: bytes))?.device else { return "\(name) cannot be read" }
    let values = [
      device.name.map(quoted), device.productType.map(quoted), device.productVersion.map { "iOS \(quoted($0))" },
      device.identifier.map(quoted),
    ].compactMap(\.self)
    return "\(name) says \(values.isEmpty ? "nothing about its device" : values.joined(separator: ", "))"
  }

  /// Describes the status.
  ///
  /// - Parameter status: The status, an inner `nil` if it is unreadable, or an outer `nil` if it is missing.
  private static func describe(_ status: BackupStatus??) -> String {
    let name = MetadataFile.status.path
    switch status {
    case nil: return "it has no \(name)"
    case .some(nil): return "\(name) cannot be read"
    case .some(let status?): return "\(name) says \(status.snapshotState.map(quoted) ?? "nothing about its progress")"
    }
  }
}
