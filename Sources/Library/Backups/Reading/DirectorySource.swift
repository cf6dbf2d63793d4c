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
  package func read(_ directory: borrowing OwnedFileDescriptor) throws(KeyhaulError) -> StoredParts {
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
    do throws(KeyhaulError) {
      parts[.seal] = try read(.seal, in: directory)
    } catch {
      // What the system did not give is no fault of the seal.
      guard error.category != .failed else { throw error }
      parts.sealFault = error
    }
    return parts
  }

  /// Reads what says about the backup as a whole, and no list of files.
  package func readPropertyLists(_ directory: borrowing OwnedFileDescriptor) throws(KeyhaulError) -> StoredParts {
    var parts = StoredParts()
    parts[.manifest] = try read(.manifest, in: directory)
    for part in [StoredPart.status, .info] {
      do throws(KeyhaulError) {
        parts[part] = try read(part, in: directory)
      } catch {
        guard error.code == .overLimit else { throw error }
        parts.unreadable.append(UnreadablePropertyList(part, error))
      }
    }
    return parts
  }

  private func read(_ part: StoredPart, in directory: borrowing OwnedFileDescriptor) throws(KeyhaulError) -> [UInt8]? {
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
    _ part: StoredPart, at path: String? = nil, in directory: borrowing OwnedFileDescriptor
  ) throws(KeyhaulError) -> StoredBytes? {
    guard let file = try open(path ?? part.path, in: directory) else { return nil }
    var collector = try StoredBytesCollector(storage, system: system, expecting: file.byteCount)
    try readWhole(file, limit: part.limit(limits)) { (portion) throws(KeyhaulError) in
      try collector.append(portion)
    }
    return try collector.finish()
  }

  /// Reads a log or a journal of SQLite's. What is none, and what is too long, is entered and not read; an empty one is none.
  private func readJournal(
    _ part: StoredPart, in directory: borrowing OwnedFileDescriptor, to parts: inout StoredParts
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

  /// Lends a payload's stored bytes in portions.
  ///
  /// - Returns: `false` where there is none.
  package func readPayload(
    _ path: String, in directory: borrowing OwnedFileDescriptor,
    portion: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) -> Bool {
    guard let file = try open(path, in: directory) else { return false }
    try readWhole(file, limit: Int(clamping: limits.entryByteCount), portion)
    return true
  }

  /// Whether a regular file is at a path of one or two names.
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

  /// Opens a regular file of the backup, one or two names deep; `nil` if nothing is there.
  private func open(_ path: String, in directory: borrowing OwnedFileDescriptor) throws(KeyhaulError) -> OpenFile? {
    let names = path.split(separator: "/").map(String.init)
    guard names.count == 2 else { return try open(path, named: path, in: directory) }
    let inner = try present(path) { () throws(Errno) in
      try system.openDirectory(names[0].systemName, in: directory)
    }
    guard let inner else { return nil }
    return try open(path, named: names[1], in: inner)
  }

  private func open(
    _ path: String, named name: String, in directory: borrowing OwnedFileDescriptor
  ) throws(KeyhaulError) -> OpenFile? {
    let file = try present(path) { () throws(Errno) in try system.openForReading(name, in: directory) }
    guard let file else { return nil }
    let raw = file.raw
    let status = try explained(path) { () throws(Errno) in try system.status(of: raw) }
    guard status.kind == .file else { throw KeyhaulError(.hostile, "\(path) is not a regular file") }
    return OpenFile(path: path, descriptor: file, byteCount: status.byteCount)
  }

  /// What `body` opens, or `nil` if nothing is there.
  private func present(
    _ path: String, _ body: () throws(Errno) -> OwnedFileDescriptor
  ) throws(KeyhaulError) -> OwnedFileDescriptor? {
    do throws(Errno) {
      return try body()
    } catch {
      if error == .noSuchFileOrDirectory { return nil }
      throw irregular(path, error)
    }
  }

  private func explained<Value>(
    _ path: String, _ body: () throws(Errno) -> Value
  ) throws(KeyhaulError) -> Value {
    do throws(Errno) {
      return try body()
    } catch {
      throw irregular(path, error)
    }
  }

  /// ELOOP and ENOTDIR are how a refused link shows itself; a socket gives ENXIO.
  private func irregular(_ path: String, _ failure: Errno) -> KeyhaulError {
    switch failure {
    case .tooManySymbolicLinkLevels, .notDirectory:
      KeyhaulError(.hostile, "\(path) is behind a link or is not a regular file")
    case .noSuchAddressOrDevice: KeyhaulError(.hostile, "\(path) is not a regular file")
    default: KeyhaulError(.unreadable, "\(path): \(failure.reason)", of: failure)
    }
  }

  private func readWhole(
    _ file: borrowing OpenFile, limit: Int, _ portion: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    let (path, raw) = (file.path, file.descriptor.raw)
    guard file.byteCount <= limit else {
      throw KeyhaulError(
        .overLimit,
        "\(path) has \(HumanReadable.grouped(file.byteCount)) bytes (limit: \(HumanReadable.grouped(Int64(limit))))")
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
        throw KeyhaulError(
          .overLimit, "\(path) grew beyond \(HumanReadable.grouped(Int64(limit))) bytes while it was being read")
      }
      try portion(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }
}

/// What in a directory that is not a backup may be meant instead.
extension DirectorySource {
  /// Names that are looked at, in a directory and in each directory of it.
  private static let maximumNameCount = 200
  /// Names that are given.
  private static let maximumCandidateCount = 3

  /// Why a directory without a manifest is not a backup.
  func notABackup(_ directory: borrowing OwnedFileDescriptor) -> KeyhaulError {
    let fact = "it has no \(StoredPart.manifest.path)"
    let (backups, parents, lostLinks) = candidates(in: directory)
    var hints: [String] = []
    if !backups.isEmpty { hints.append("\(Self.listed(backups)) in it may be a backup") }
    if !parents.isEmpty { hints.append("backups are in \(Self.listed(parents))") }
    if let link = lostLinks.first {
      hints.append("the link \(quoted(link.name)) points to \(link.target), which does not exist")
    }
    return KeyhaulError(.notABackup, ([fact] + hints).joined(separator: "; "))
  }

  private static func listed(_ names: [String]) -> String {
    let shown = names.prefix(maximumCandidateCount).map(quoted)
    return names.count > shown.count
      ? shown.joined(separator: ", ") + ", ..." : HumanReadable.list(shown, conjunction: "or")
  }

  private typealias LostLink = (name: String, target: String)

  /// By name: what is a backup's directory or begins like a packed one, and directories of backups, such as `Backup` in
  /// `MobileSync`; also links to such directories, and links that lead nowhere. What cannot be read is not a candidate.
  private func candidates(
    in directory: borrowing OwnedFileDescriptor
  ) -> (backups: [String], parents: [String], lostLinks: [LostLink]) {
    var (backups, parents): ([String], [String]) = ([], [])
    var lostLinks: [LostLink] = []
    for name in names(in: directory) {
      switch kind(of: name, in: directory) {
      case .file: if isContainer(name, in: directory) { backups.append(name) }
      case .directory, .link:
        if hasManifest(name, in: directory) {
          backups.append(name)
        } else if holdsBackups(name, in: directory) {
          parents.append(name)
        } else if let target = lostTarget(of: name, in: directory) {
          lostLinks.append((name, target))
        }
      case .pipe, .other, nil: continue
      }
    }
    return (backups, parents, lostLinks)
  }

  /// Where a link leads that leads to nothing; `nil` for everything else.
  private func lostTarget(of name: String, in directory: borrowing OwnedFileDescriptor) -> String? {
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

  private func isContainer(_ name: String, in directory: borrowing OwnedFileDescriptor) -> Bool {
    do {
      return try beginsLikeContainer(try system.openForReading(name, in: directory))
    } catch {
      return false
    }
  }

  private func beginsLikeContainer(_ file: borrowing OwnedFileDescriptor) throws(KeyhaulError) -> Bool {
    _ = try ContainerFormat(try DescriptorFeed(descriptor: file.raw, system: system))
    return true
  }

  private func hasManifest(_ name: String, in directory: borrowing OwnedFileDescriptor) -> Bool {
    do {
      return try isBackup(try system.openLinkedDirectory(name.systemName, in: directory))
    } catch {
      return false
    }
  }

  private func isBackup(_ directory: borrowing OwnedFileDescriptor) throws(Errno) -> Bool {
    try system.status(of: StoredPart.manifest.path.systemName, in: directory)?.kind == .file
  }

  private func holdsBackups(_ name: String, in directory: borrowing OwnedFileDescriptor) -> Bool {
    do {
      return hasBackup(try system.openLinkedDirectory(name.systemName, in: directory))
    } catch {
      return false
    }
  }

  private func hasBackup(_ directory: borrowing OwnedFileDescriptor) -> Bool {
    for name in names(in: directory) where hasManifest(name, in: directory) { return true }
    return false
  }
}

/// The payloads in a backup's directory, by their names.
extension DirectorySource {
  /// Lists the payloads: in the 256 directories that may hold some, or of an old backup in the directory itself. One that
  /// has another name than a device gives it is found in both, in small letters and capitals.
  ///
  /// - Parameter identifier: Of the only payload that is looked for; `nil` to list all.
  package func payloads(
    of directory: borrowing OwnedFileDescriptor, layout: BackupLayout, only identifier: String? = nil
  ) throws(KeyhaulError) -> StoredPayloads {
    var payloads = StoredPayloads()
    do {
      let names = try system.names(in: directory)
      let hasBothLists = BackupLayout.allCases.allSatisfy { layout in
        names.contains { $0.text == layout.listPart.path }
      }
      let search = Search(layout: layout, identifier: identifier, hasBothLists: hasBothLists)
      try add(names, of: directory, inner: "", search, to: &payloads)
      for name in names where BackupPath.isPayloadDirectory(name.text) {
        let text = name.text
        if let identifier, !identifier.hasPrefix(text.lowercased()) { continue }
        guard try system.status(of: name, in: directory)?.kind == .directory else { continue }
        let inner = try system.openDirectory(name, in: directory)
        try add(try system.names(in: inner), of: inner, inner: text, search, to: &payloads)
      }
    } catch {
      throw KeyhaulError(.unreadable, error.reason, of: error)
    }
    payloads.settle()
    return payloads
  }

  /// Where a payload lies whose own name leads to nothing; `nil` if it is not there, and if the names cannot be listed.
  func otherPath(of identifier: String, in directory: borrowing OwnedFileDescriptor, _ layout: BackupLayout) -> String?
  {
    (try? payloads(of: directory, layout: layout, only: identifier))?.otherPath(of: identifier)
  }

  private struct Search {
    let layout: BackupLayout
    let identifier: String?
    /// A device that was updated may have left its old list behind, and the payloads of it under their own names.
    let hasBothLists: Bool
  }

  /// - Parameter inner: The name of the directory in that of the backup, empty for the latter.
  private func add(
    _ names: [FileSystem.Name], of directory: borrowing OwnedFileDescriptor, inner: String, _ search: Search,
    to payloads: inout StoredPayloads
  ) throws(Errno) {
    let prefix = inner.lowercased()
    let ownLayout: BackupLayout = inner.isEmpty ? .mbdb : .manifestDB
    for file in names {
      let name = file.text
      guard name.utf8.count == 40 else { continue }
      let isExact = isFileIdentifier(name)
      let identifier = isExact ? name : name.lowercased()
      guard isExact || isFileIdentifier(identifier), identifier.hasPrefix(prefix) else { continue }
      if let wanted = search.identifier, wanted != identifier { continue }
      let isProper = isExact && inner == prefix
      let isOwn = isProper && ownLayout == search.layout
      if isProper, !isOwn, search.hasBothLists { continue }
      guard let status = try system.status(of: file, in: directory) else { continue }
      if isOwn {
        if status.kind == .file {
          payloads.add(name, byteCount: status.byteCount)
        } else {
          payloads.addIrregular(name)
        }
      } else if status.kind == .file {
        // What is no regular file is none of the backup's under a name that no device gives.
        payloads.addCandidate(inner.isEmpty ? name : "\(inner)/\(name)", for: identifier, byteCount: status.byteCount)
      }
    }
  }
}

/// What is left of a backup that ended before its manifest was written, or lost it.
extension DirectorySource {
  /// Where a device keeps what it writes until the backup is finished.
  ///
  /// Source: libimobiledevice, `idevicebackup2.c`.
  private static let snapshotName = "Snapshot"

  /// Why a directory without a manifest is a part of a backup; `nil` if nothing shows that it is one.
  ///
  /// - Parameter propertyLists: What of its property lists was read.
  func withoutManifest(_ directory: borrowing OwnedFileDescriptor, _ propertyLists: StoredParts) -> KeyhaulError? {
    let (hasInfo, hasStatus) = (propertyLists.contains(.info), propertyLists.contains(.status))
    let payloadCount = payloadCount(in: directory)
    var facts = ["it has no \(StoredPart.manifest.path), which is needed to get its keys"]
    // An app has an Info.plist too.
    let snapshot = try? system.openDirectory(Self.snapshotName.systemName, in: directory)
    var hasSnapshot = false
    if let snapshot {
      hasSnapshot = true
      let inner = self.payloadCount(in: snapshot)
      facts.append("its \(Self.snapshotName) folder remains, with \(HumanReadable.count(inner, "payload"))")
    }
    guard hasInfo && hasStatus || (hasInfo || hasStatus) && (payloadCount > 0 || hasSnapshot) else { return nil }
    if let bytes = propertyLists[.info] { facts.append(Self.words(ofInfo: bytes)) }
    let status = propertyLists[.status].map { bytes in try? BackupStatus(parsing: bytes) }
    facts.append(Self.words(of: status))
    facts.append("\(HumanReadable.count(payloadCount, "payload")) \(payloadCount == 1 ? "is" : "are") in it")
    let isFinished = status??.isFinished == true
    return KeyhaulError(isFinished ? .damaged : .manifestMissing, facts.joined(separator: "; "))
  }

  /// Whether `Manifest.db` starts like a database that is not encrypted.
  func hasDatabase(_ directory: borrowing OwnedFileDescriptor) -> Bool {
    do {
      let file = try system.openForReading(StoredPart.database.path, in: directory)
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

  /// - Returns: 0 if they cannot be counted.
  private func payloadCount(in directory: borrowing OwnedFileDescriptor) -> Int {
    var identifiers: Set<String> = []
    for layout in BackupLayout.allCases {
      identifiers.formUnion((try? payloads(of: directory, layout: layout))?.fileIdentifiers() ?? [])
    }
    return identifiers.count
  }

  private static func words(ofInfo bytes: [UInt8]) -> String {
    let name = StoredPart.info.path
    guard let device = (try? ComputerProperties(parsing: bytes))?.device else { return "\(name) cannot be read" }
    let words = [
      device.name.map(quoted), device.productType.map(quoted), device.productVersion.map { "iOS \(quoted($0))" },
      device.identifier.map(quoted),
    ].compactMap(\.self)
    return "\(name) says \(words.isEmpty ? "nothing about its device" : words.joined(separator: ", "))"
  }

  /// - Parameter status: `nil` if there is none, and a `nil` in it if it cannot be read.
  private static func words(of status: BackupStatus??) -> String {
    let name = StoredPart.status.path
    switch status {
    case nil: return "it has no \(name)"
    case .some(nil): return "\(name) cannot be read"
    case .some(let status?): return "\(name) says \(status.snapshotState.map(quoted) ?? "nothing about its progress")"
    }
  }
}
