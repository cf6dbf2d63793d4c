import Basics
import KeychainFormats

/// Counts the entries of a container, finds the backup's directory among them, and rejects entries that no backup has.
struct ContainerScanner {
  /// The type of an entry.
  enum Kind: Equatable {
    case file, directory
    /// Any other type, with its description, such as "a symbolic link".
    case other(String)

    /// Creates the kind from the type bits of an `st_mode`, as in stat(2) on every system.
    init(mode: UInt32) {
      self =
        switch mode & 0o170000 {
        case 0o100000: .file
        case 0o040000: .directory
        case 0o120000: .other("a symbolic link")
        case 0o010000: .other("a pipe")
        case 0o140000: .other("a socket")
        case 0o020000, 0o060000: .other("a device")
        default: .other("of an unknown kind")
        }
    }
  }

  /// A metadata file to keep in memory, and its directory, which is empty if the file has none.
  struct RequestedFile {
    let directory: EntryName
    let part: MetadataFile
  }

  private let limits: BackupLimits
  private let keychainLimit: Int
  private var usedNames: Set<EntryPath.CollisionKey> = []
  private(set) var entryCount = 0
  private var claimedByteCount: Int64 = 0
  private var requestedByteCount: Int64 = 0
  /// The metadata files by their directory.
  private var metadata: [EntryName: MetadataFiles] = [:]
  /// The payloads by layout, then by the directory around the backup's files.
  private var payloads: [BackupLayout: [EntryName: StoredPayloads]] = [:]
  /// Payload files whose paths have capital letters, by the directory around the backup's files.
  private var renamedPayloads: [EntryName: [RenamedPayload]] = [:]

  /// A payload file whose path has capital letters.
  struct RenamedPayload {
    /// The path in the backup's directory.
    let path: String
    let identifier: String
    let byteCount: Int64
  }

  /// Creates a scanner.
  ///
  /// - Parameter containerByteCount: The size of the container file, or `nil` if it is a stream.
  init(limits: BackupLimits, containerByteCount: Int64?) {
    self.limits = limits
    keychainLimit = limits.keychainByteCount(inContainerOf: containerByteCount)
  }

  /// Records an entry.
  ///
  /// - Returns: The metadata file to keep, or `nil` if the entry's content can be skipped.
  mutating func accept(name: EntryName, kind: Kind, byteCount: Int64) throws(KeyhaulError) -> RequestedFile? {
    entryCount += 1
    guard entryCount <= limits.entryCount else {
      throw KeyhaulError(.overLimit, "it has more than \(HumanReadable.grouped(Int64(limits.entryCount))) entries")
    }
    if case .other(let description) = kind { throw rejection(name, "it is \(description)") }
    if name == EntryName("./") || name == EntryName(".") { return nil }
    let path: EntryPath
    do {
      path = try EntryPath(name, limit: limits.pathByteCount)
    } catch {
      throw rejection(name, error.text)
    }
    guard kind == .directory || name.bytes.last != UInt8(ascii: "/") else {
      throw rejection(name, "it is a file with a folder's name")
    }
    guard usedNames.insert(path.collisionKey).inserted else {
      if kind == .directory { return nil }
      throw rejection(name, "its name was used before, or differs from an earlier one only in case or Unicode form")
    }
    guard kind == .file else { return nil }
    try addClaimedByteCount(byteCount, of: name)
    return try add(path, name: name, byteCount: byteCount)
  }

  /// Adds the claimed size of a file.
  ///
  /// - Throws: `.overLimit` if the file or all files together claim too many bytes.
  private mutating func addClaimedByteCount(_ byteCount: Int64, of name: EntryName) throws(KeyhaulError) {
    guard byteCount >= 0, byteCount <= limits.entryByteCount else {
      throw KeyhaulError(
        .overLimit,
        "entry \(entryCount), \(quoted(name)), claims \(HumanReadable.grouped(byteCount)) bytes "
          + "(limit: \(HumanReadable.grouped(limits.entryByteCount)))")
    }
    let (total, overflow) = claimedByteCount.addingReportingOverflow(byteCount)
    claimedByteCount = total
    guard !overflow, total <= limits.totalByteCount else {
      throw KeyhaulError(
        .overLimit,
        "its first \(entryCount) entries claim more than \(HumanReadable.grouped(limits.totalByteCount)) bytes"
      )
    }
  }

  /// Adds a file to the payloads, or returns the metadata file to keep.
  private mutating func add(
    _ path: EntryPath, name: EntryName, byteCount: Int64
  ) throws(KeyhaulError) -> RequestedFile? {
    for layout in BackupLayout.allCases {
      guard let (directory, identifier) = path.payload(in: layout) else { continue }
      payloads[layout, default: [:]][directory, default: StoredPayloads()].add(identifier, byteCount: byteCount)
    }
    for (directory, path, identifier) in path.renamedPayloads {
      renamedPayloads[directory, default: []].append(
        RenamedPayload(path: path, identifier: identifier, byteCount: byteCount))
    }
    guard let requested = path.requestedFile else { return nil }
    // SQLite leaves empty journals.
    guard byteCount > 0 || !requested.part.isJournal else { return nil }
    let isKeychain = requested.part == .keychain || requested.part == .oldKeychain
    let limit = isKeychain ? keychainLimit : requested.part.limit(limits)
    guard byteCount <= limit else {
      try recordOversized(requested, name: name, byteCount: byteCount, limit: limit)
      return nil
    }
    // A container could have the metadata files of many backups, each in a different directory.
    requestedByteCount += byteCount
    guard requestedByteCount <= limits.retainedByteCount else {
      throw KeyhaulError(.overLimit, "its first \(entryCount) entries contain more manifests than one backup has")
    }
    return requested
  }

  /// Records that a metadata file is larger than its limit.
  ///
  /// - Throws: `.overLimit` if the backup cannot be opened without the file.
  private mutating func recordOversized(
    _ requested: RequestedFile, name: EntryName, byteCount: Int64, limit: Int
  ) throws(KeyhaulError) {
    let (directory, part) = (requested.directory, requested.part)
    let size = "\(HumanReadable.grouped(byteCount)) bytes (limit: \(HumanReadable.grouped(Int64(limit))))"
    switch part {
    case .databaseLog, .databaseJournal:
      metadata[directory, default: MetadataFiles()].unreadJournals[part] = (
        byteCount, "Keyhaul reads at most \(HumanReadable.bytes(limit))"
      )
    case .info, .status:
      let error = KeyhaulError(.overLimit, "\(part.path) has \(size)")
      metadata[directory, default: MetadataFiles()].unreadable.append(UnreadablePropertyList(part, error))
    case .seal:
      metadata[directory, default: MetadataFiles()].sealFault = KeyhaulError(.overLimit, "it has \(size)")
    case .manifest, .database, .keychain, .oldDatabase, .oldKeychain:
      throw KeyhaulError(.overLimit, "entry \(entryCount), \(quoted(name)), claims \(size)")
    }
  }

  mutating func store(_ bytes: [UInt8], for requested: RequestedFile) {
    metadata[requested.directory, default: MetadataFiles()][requested.part] = bytes
  }

  mutating func store(_ bytes: SpooledData, for requested: RequestedFile) {
    metadata[requested.directory, default: MetadataFiles()][large: requested.part] = bytes
  }

  /// Returns the error for the current entry.
  func rejection(_ name: EntryName, _ reason: String) -> KeyhaulError {
    KeyhaulError(.hostile, "entry \(entryCount) is named \(quoted(name)); \(reason)")
  }

  /// Returns the only backup among the entries.
  func finish() throws(KeyhaulError) -> Contents {
    let directories = try backupDirectories()
    guard directories.count < 2 else { throw Self.severalBackups(in: directories) }
    guard let directory = directories.first, var parts = metadata[directory] else {
      throw KeyhaulError(
        .notABackup, "it has no Manifest.plist in any folder",
        meaning: ErrorMeaning(
          .refused, "this is not a backup", advice: "unpack it, and name the folder that has a Manifest.plist"))
    }
    let layout = parts.layout ?? .manifestDB
    let stored = storedPayloads(in: directory, layout, hasBothLists: parts.contains(layout.other.listPart))
    // The keychain file may have the name of either layout, also in capitals.
    let keychain = MetadataFile.keychainFileIdentifier
    if let path = stored.unusualPath(of: keychain) {
      parts[large: layout.keychainPart] = parts[large: path.contains("/") ? .keychain : .oldKeychain]
    } else if stored.byteCount(of: keychain) == nil {
      parts[large: layout.keychainPart] = nil
    }
    return Contents(directory: directory, parts: parts, payloads: stored)
  }

  /// Returns the directories with a manifest. If no directory has one, returns the directories
  /// with an unencrypted list of files.
  private func backupDirectories() throws(KeyhaulError) -> [EntryName] {
    let candidates = metadata.keys.filter { $0.lastComponent != Self.snapshotDirectory }
      .sorted { $0.precedesAsPath($1) }
    var directories = candidates.filter { metadata[$0]?.contains(.manifest) == true }
    if directories.isEmpty {
      for name in candidates where try metadata[name]?.hasPlaintextList() == true { directories.append(name) }
    }
    // A folder inside a backup's folder is not a second backup. All such folders directly follow the backup's folder,
    // so millions of folders need not be compared with each other.
    return directories.reduce(into: [EntryName]()) { outermost, directory in
      if let last = outermost.last, !last.isEmpty, directory.isInside(last) { return }
      outermost.append(directory)
    }
  }

  private static let maximumNamedDirectoryCount = 3

  private static func severalBackups(in directories: [EntryName]) -> KeyhaulError {
    let sorted = directories.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    var names = sorted.prefix(maximumNamedDirectoryCount).map { $0.isEmpty ? "its top folder" : quoted($0) }
    let otherCount = directories.count - names.count
    if otherCount > 0 { names.append("\(otherCount) other folders") }
    return KeyhaulError(
      .unsupported, "it contains \(directories.count) backups, in \(HumanReadable.list(names))",
      meaning: ErrorMeaning(
        .refused, "it contains several backups",
        advice: "unpack it and name the folder with the backups in it, or leave only one backup in it"))
  }

  /// Returns the payloads of a backup, including those at unusual paths.
  private func storedPayloads(
    in directory: EntryName, _ layout: BackupLayout, hasBothLists: Bool
  ) -> StoredPayloads {
    var stored = payloads[layout]?[directory] ?? StoredPayloads()
    if !hasBothLists, let otherPayloads = payloads[layout.other]?[directory] {
      for identifier in otherPayloads.fileIdentifiers() {
        guard let byteCount = otherPayloads.byteCount(of: identifier) else { continue }
        stored.addCandidate(layout.other.storedPath(of: identifier), for: identifier, byteCount: byteCount)
      }
    }
    for file in renamedPayloads[directory] ?? [] {
      stored.addCandidate(file.path, for: file.identifier, byteCount: file.byteCount)
    }
    stored.resolveCandidates()
    return stored
  }

  /// The directory that a device creates while it writes a backup, with its own manifest.
  private static let snapshotDirectory = EntryName("Snapshot")

  /// The backup in a container.
  struct Contents {
    /// The directory around the backup's files, at any depth, or empty if there is none.
    let directory: EntryName
    let parts: MetadataFiles
    let payloads: StoredPayloads
  }
}

extension EntryPath {
  /// The metadata file with this path, in a directory at any depth, or `nil` if no metadata file has the path.
  fileprivate var requestedFile: ContainerScanner.RequestedFile? {
    for (part, path) in metadataPaths {
      let lastComponents = components.suffix(path.count)
      // Only the keychain file is also recognized in capitals.
      let isKeychain = part == .keychain || part == .oldKeychain
      let isMatch =
        isKeychain ? lastComponents.elementsEqual(path, by: Self.isSame) : lastComponents.elementsEqual(path)
      if isMatch { return .init(directory: directory(around: path.count), part: part) }
    }
    return nil
  }

  /// Returns whether a name equals a lower-case name, apart from capitals in the name.
  private static func isSame(_ name: ArraySlice<UInt8>, _ lowercased: ArraySlice<UInt8>) -> Bool {
    name.elementsEqual(lowercased) { $0 == $1 || (isCapital($0) && $0 | 0x20 == $1) }
  }

  private static func isCapital(_ byte: UInt8) -> Bool { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) }

  /// The payloads that this path may name if it contains capitals. Each has the directory around the backup's files, and
  /// its path in that directory.
  fileprivate var renamedPayloads: [(directory: EntryName, path: String, identifier: String)] {
    guard components.last?.count == 40, components.suffix(2).contains(where: { $0.contains(where: Self.isCapital) })
    else { return [] }
    let names = components.suffix(2).map { String(decoding: $0, as: UTF8.self) }
    return (1...2).compactMap { count in
      guard count <= names.count else { return nil }
      let components = names.suffix(count)
      let path = components.joined(separator: "/")
      guard let identifier = BackupPath.payload(at: components),
        !BackupLayout.allCases.contains(where: { $0.storedPath(of: identifier) == path })
      else { return nil }
      return (directory(around: count), path, identifier)
    }
  }

  /// Returns the directory around the backup's files and the identifier of the payload with this path, or `nil` if it
  /// is not the path of a payload in the layout.
  fileprivate func payload(in layout: BackupLayout) -> (directory: EntryName, identifier: String)? {
    guard let name = components.last, isFileIdentifier(utf8: name) else { return nil }
    let identifier = String(decoding: name, as: UTF8.self)
    // In a directory with the first two digits, it is a payload of the newer layout only.
    if layout == .mbdb, components.count > 1, components[components.count - 2].elementsEqual(name.prefix(2)) {
      return nil
    }
    let path = parts(of: layout.storedPath(of: identifier))
    guard components.suffix(path.count).elementsEqual(path) else { return nil }
    return (directory(around: path.count), identifier)
  }
}

/// The metadata files with the components of their paths.
private let metadataPaths = MetadataFile.allCases.map { ($0, parts(of: $0.path)) }

private func parts(of path: String) -> [ArraySlice<UInt8>] { Array(path.utf8).split(separator: UInt8(ascii: "/")) }
