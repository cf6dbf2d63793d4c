import Basics
import KeychainFormats
import SystemPackage

/// The files of a backup in a directory or a container file, for rewriting it.
struct BackupFiles {
  let archive: BackupArchive
  let path: String
  let limits: BackupLimits
  let system: FileSystem

  /// A file of a backup.
  struct File {
    /// The path in the backup's directory: the usual path of a payload, even if its actual path is unusual. For an
    /// unrelated file, its full name for display.
    let path: String
    /// The file's name in its container, or its path in the directory. For a payload at an unusual path, it ends with
    /// the usual path.
    let name: EntryName
    /// Whether the file is part of the backup.
    let isPartOfBackup: Bool
    let byteCount: Int64
    let modificationTime: Int64
    /// The size above which the file is not copied.
    let byteLimit: Int64
    /// The identifier, if the file is a payload.
    let payloadIdentifier: String?
    fileprivate let source: Source

    fileprivate enum Source {
      case directory(DirectoryFiles, DirectoryFiles.File)
      case container(ContainerReader, ContainerReader.File)
    }

    /// Whether the file is at a path for payloads of the other layout. An updated device may leave such payloads.
    var isLeftover: Bool { isPartOfBackup && payloadIdentifier == nil && BackupPath.payload(at: path) != nil }

    /// Whether the file is a log or journal of the file list.
    var isJournal: Bool { isPartOfBackup && MetadataFile.journals.contains { $0.path == path } }

    /// Passes the content to a closure in chunks. The content can be read only once.
    func forEachChunk(_ body: (UnsafeRawBufferPointer) throws(KeyhaulError) -> Void) throws(KeyhaulError) {
      switch source {
      case .directory(let files, let file): try files.forEachChunk(of: file, body)
      case .container(let reader, let file): try reader.forEachChunk(of: file, body)
      }
    }

    /// Copies the file unchanged.
    ///
    /// - Parameter name: The name in the copy.
    /// - Throws: `.overLimit` if the file is larger than `byteLimit`, because a sparse file would fill the disk;
    ///   `.interrupted` if the observer of the progress stops the copy; the errors of reading and writing.
    func copy(
      to sink: any StoredFileSink, as name: EntryName, modificationTime: Int64, _ copyProgress: CopyProgress
    ) throws(KeyhaulError) {
      guard byteCount <= byteLimit else {
        throw KeyhaulError(
          .overLimit,
          "\(quoted(path)) has \(HumanReadable.grouped(byteCount)) bytes (limit: \(HumanReadable.grouped(byteLimit)))")
      }
      try sink.begin(name, byteCount: byteCount, modificationTime: modificationTime)
      try forEachChunk { (chunk) throws(KeyhaulError) in
        try sink.write(chunk)
        try copyProgress.add(chunk.count)
      }
      try sink.end()
    }

    /// Copies the file unchanged under its name, with a hard link if possible.
    func copyOrLink(to sink: any StoredFileSink, _ copyProgress: CopyProgress) throws(KeyhaulError) {
      if case .directory(let files, let file) = source, file.storedPath == path,
        try sink.link(path, from: files.handle, file.status)
      {
        return try copyProgress.add(Int(clamping: byteCount))
      }
      try copy(to: sink, as: name, modificationTime: modificationTime, copyProgress)
    }

    /// Returns the last `count` bytes of the file, or all bytes of a shorter file. The content of a container's entry
    /// cannot be read again afterwards.
    func lastBytes(_ count: Int) throws(KeyhaulError) -> [UInt8] {
      switch source {
      case .directory(let files, let file): return try files.lastBytes(count, of: file)
      case .container(let reader, let file):
        var end: [UInt8] = []
        try reader.forEachChunk(of: file) { (chunk) throws(KeyhaulError) in
          end = Array((end + chunk.suffix(count)).suffix(count))
        }
        return end
      }
    }
  }

  /// The directory of the backup in a container file, empty if there is none.
  var directory: EntryName { if case .container(let container) = archive.source { container.directory } else { .none } }

  var isDirectory: Bool { if case .directory = archive.source { true } else { false } }

  /// Returns the format of the container file.
  ///
  /// - Precondition: The backup is in a container file.
  func format() throws(KeyhaulError) -> ContainerFormat {
    try withContainer { (_, format) throws(KeyhaulError) in format }
  }

  /// Opens the container file again.
  private func withContainer<Value>(
    _ body: (FileDescriptorSource, ContainerFormat) throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    let file = SharedDescriptor(try opened(path) { () throws(Errno) in try system.openForReading(path) })
    let source = try FileDescriptorSource(descriptor: file.descriptor.raw, system: system)
    let format = try ContainerFormat(source)
    defer { withExtendedLifetime(file) {} }
    return try body(source, format)
  }

  /// Calls a closure for each file. In a directory, these are only the backup's files; in a container, all files.
  ///
  /// - Returns: The paths of unrelated files and folders in a directory; empty for a container.
  /// - Throws: `.unsupported` for a stream; the errors of reading and of `body`.
  @discardableResult
  func forEachFile(_ body: (File) throws(KeyhaulError) -> Void) throws(KeyhaulError) -> [String] {
    switch archive.source {
    case .directory: return try forEachFileInDirectory(body)
    case .container(let container):
      try forEachFile(in: container, body)
      return []
    case .stream:
      throw KeyhaulError(
        .unsupported,
        "a stream can be read only once, and it has been read")
    }
  }

  private func forEachFileInDirectory(_ body: (File) throws(KeyhaulError) -> Void) throws(KeyhaulError) -> [String] {
    let resolver = PathResolver(archive)
    let files = try DirectoryFiles(path, system: system)
    return try files.forEachFile(pathInBackup: resolver.pathInBackup(of:)) { (file) throws(KeyhaulError) in
      try body(
        File(
          path: file.path, name: EntryName(file.path), isPartOfBackup: true, byteCount: file.byteCount,
          modificationTime: 0, byteLimit: byteLimit(of: file.path), payloadIdentifier: payloadIdentifier(at: file.path),
          source: .directory(files, file)))
    }
  }

  private func forEachFile(
    in container: ContainerHandle, _ body: (File) throws(KeyhaulError) -> Void
  ) throws(KeyhaulError) {
    let resolver = PathResolver(archive)
    try withContainer { (source, format) throws(KeyhaulError) in
      let files = try ContainerReader(source, as: format, limits: limits)
      while let file = try files.next() {
        let storedPath = BackupPath.inside(container.directory, file.path)
        let path = try storedPath.flatMap { (path) throws(KeyhaulError) in try resolver.pathInBackup(of: path) }
        var name = file.name
        if let storedPath, let path, path != storedPath { name = name.dropLast(storedPath.utf8.count) + path }
        try body(
          File(
            path: path ?? file.name.shown, name: name, isPartOfBackup: path != nil, byteCount: file.byteCount,
            modificationTime: file.modificationTime, byteLimit: path.map(byteLimit) ?? limits.entryByteCount,
            payloadIdentifier: path.flatMap(payloadIdentifier), source: .container(files, file)))
      }
    }
  }

  /// Determines the path in the backup for the stored path of each file.
  private final class PathResolver {
    private let archive: BackupArchive
    /// The stored files, which are listed only for the first payload with an unusual path.
    private var stored: StoredPayloads?

    init(_ archive: BackupArchive) { self.archive = archive }

    /// Returns the usual path of a payload, the stored path of another file of the backup, or `nil` if the file is
    /// unrelated.
    func pathInBackup(of storedPath: String) throws(KeyhaulError) -> String? {
      let layout = archive.layout
      guard let identifier = BackupPath.payload(at: storedPath), layout.storedPath(of: identifier) != storedPath else {
        return storedPath
      }
      let stored = try storedFiles()
      if stored.unusualPath(of: identifier) == storedPath { return layout.storedPath(of: identifier) }
      // An updated device may leave its old file list and the payloads of that list. These keep their paths.
      let isLeftover =
        layout.other.storedPath(of: identifier) == storedPath && !stored.isUnusedCandidate(storedPath)
      return isLeftover ? storedPath : nil
    }

    private func storedFiles() throws(KeyhaulError) -> StoredPayloads {
      if let stored { return stored }
      let files = try archive.storedFiles()
      stored = files
      return files
    }
  }

  /// Returns the identifier of the payload whose usual path this is, or `nil` if there is none.
  private func payloadIdentifier(at path: String) -> String? {
    BackupPath.payload(at: path).flatMap { archive.layout.storedPath(of: $0) == path ? $0 : nil }
  }

  /// Returns the maximum size of the backup's file at a path, in bytes.
  private func byteLimit(of path: String) -> Int64 {
    switch MetadataFile.allCases.first(where: { $0.path == path }) {
    case nil: limits.entryByteCount
    // Optional files that are too large to be read are copied unchanged.
    case .info?, .status?, .databaseLog?, .databaseJournal?: Int64(limits.databaseByteCount)
    case let part?: Int64(part.limit(limits))
    }
  }

  /// Returns the paths of unrelated files and folders in a directory, except files of the operating system. These
  /// files would be lost if the directory were replaced.
  ///
  /// - Returns: An empty array for a container.
  func unrelatedPaths() throws(KeyhaulError) -> [String] {
    guard isDirectory else { return [] }
    return try forEachFile { _ in }.filter { !FileSystem.isSystemClutter($0) }
  }
}

/// The number of bytes that were copied or only read, reported to an observer that can stop the work.
final class CopyProgress {
  let total: Int64
  private var byteCount: Int64 = 0
  private let progress: (_ done: Int64, _ total: Int64) -> Bool

  init(total: Int64, _ progress: @escaping (_ done: Int64, _ total: Int64) -> Bool) {
    self.total = total
    self.progress = progress
  }

  func add(_ count: Int) throws(KeyhaulError) {
    byteCount += Int64(count)
    guard progress(byteCount, total) else { throw KeyhaulError(.interrupted, "it was stopped") }
  }
}
