import Basics
import SystemPackage

/// The files of the replaced backup, whose owner and permissions the new files keep.
struct ReplacedFiles {
  private let directory: DirectoryHandle
  private let access: PreservedAccess

  init(_ directory: DirectoryHandle, _ access: PreservedAccess) {
    self.directory = directory
    self.access = access
  }

  /// Gives a new file the owner and permissions of the file that it replaces.
  ///
  /// - Parameter path: The path of the new file in its backup. If the replaced backup has no such file, the access of
  ///   its manifest is used.
  func preserveAccess(for file: borrowing OwnedFileDescriptor, at path: String, _ system: FileSystem) throws(Errno) {
    var oldStatus = try system.status(of: path.systemName, in: directory.descriptor)
    if oldStatus == nil {
      oldStatus = try system.status(of: MetadataFile.manifest.path.systemName, in: directory.descriptor)
    }
    guard let oldStatus, oldStatus.kind == .file else { return }
    try system.preserveAccess(of: oldStatus, for: file, access)
  }

  /// Gives a new directory the owner and permissions of the directory that it replaces.
  ///
  /// - Parameter name: The name of the new directory in its backup, or `nil` if it is the backup's own directory.
  func preserveAccess(forDirectory file: borrowing OwnedFileDescriptor, named name: String?, _ system: FileSystem)
    throws(Errno)
  {
    var oldStatus: FileStatus?
    if let name { oldStatus = try system.status(of: name.systemName, in: directory.descriptor) }
    if oldStatus == nil { oldStatus = try system.status(of: directory.descriptor.raw) }
    guard let oldStatus, oldStatus.kind == .directory else { return }
    try system.preserveAccess(of: oldStatus, for: file, access)
  }
}

/// A sink that writes a backup's files to a directory and syncs each.
final class DirectorySink: StoredFileSink {
  private let system: FileSystem
  /// The directory, which stays claimed during the sink's lifetime.
  private let directory: OwnedFileDescriptor
  private let replaced: ReplacedFiles?
  private var innerDirectories: Set<String> = []
  private var file: OwnedFileDescriptor?
  private var path = ""
  private var expectedByteCount: Int64 = 0

  /// Creates a sink.
  ///
  /// - Parameters:
  ///   - directory: A new, empty directory.
  ///   - replaced: The files whose owner and permissions the new files keep, or `nil` to give access only to this user.
  init(_ directory: consuming OwnedFileDescriptor, replacing replaced: ReplacedFiles? = nil, system: FileSystem) {
    self.directory = directory
    self.replaced = replaced
    self.system = system
    _ = system.claim(self.directory)
  }

  deinit { system.unclaim(directory) }

  /// Sets the permissions of the directory. By default, only its owner has access.
  func setPermissions(_ permissions: UInt32) throws(Errno) {
    try system.setPermissions(permissions, of: directory)
  }

  func begin(_ path: EntryName, byteCount: Int64, modificationTime: Int64) throws(KeyhaulError) {
    do throws(Errno) {
      file = try create(path.shown)
      self.path = path.shown
    } catch {
      throw .writing(error)
    }
    expectedByteCount = byteCount
  }

  private func create(_ path: String) throws(Errno) -> OwnedFileDescriptor {
    let names = path.split(separator: "/").map(String.init)
    guard names.count == 2 else { return try system.createFile(path, in: directory) }
    return try system.createFile(names[1], in: try innerDirectory(names[0]))
  }

  private func innerDirectory(_ name: String) throws(Errno) -> OwnedFileDescriptor {
    if innerDirectories.insert(name).inserted { try system.makeDirectory(name, in: directory) }
    return try system.openDirectory(name.systemName, in: directory)
  }

  /// Creates a hard link to a file. Returns `false` if this is impossible, for example because the file has a different
  /// owner. The caller then copies the file.
  func link(_ path: String, from sourceDirectory: DirectoryHandle, _ status: FileStatus) throws(KeyhaulError) -> Bool {
    let linkStatus: FileStatus?
    do throws(Errno) {
      let names = path.split(separator: "/").map(String.init)
      if names.count == 2 {
        let inner = try innerDirectory(names[0])
        guard try link(path, from: sourceDirectory, as: names[1], in: inner) else { return false }
        linkStatus = try system.status(of: names[1].systemName, in: inner)
      } else {
        guard try link(path, from: sourceDirectory, as: path, in: directory) else { return false }
        linkStatus = try system.status(of: path.systemName, in: directory)
      }
    } catch {
      throw .writing(error)
    }
    guard let linkStatus, linkStatus.isSame(as: status) else {
      throw KeyhaulError(.changed, "\(quoted(path)) changed while it was being copied")
    }
    return true
  }

  private func link(
    _ path: String, from sourceDirectory: DirectoryHandle, as name: String, in directory: borrowing OwnedFileDescriptor
  ) throws(Errno) -> Bool {
    do throws(Errno) {
      try system.linkFile(path, in: sourceDirectory.descriptor, as: name, in: directory)
      return true
    } catch {
      // Without a hard link, the file is copied. If that fails as well, its error is reported.
      guard error != .noSpace, error != .diskQuotaExceeded, error != .ioError else { throw error }
      return false
    }
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws(KeyhaulError) {
    guard let raw = file?.raw else { return }
    do throws(Errno) {
      try system.writeAll(bytes, to: raw)
    } catch {
      throw .writing(error)
    }
  }

  func end() throws(KeyhaulError) {
    guard let file = file.take() else { return }
    do throws(Errno) {
      try replaced?.preserveAccess(for: file, at: path, system)
      try system.finalize(file, expectedByteCount: expectedByteCount)
    } catch {
      throw .writing(error)
    }
  }

  /// Syncs the directory entries. Nothing may be written afterwards.
  func finish() throws(Errno) {
    for name in innerDirectories.sorted() {
      let inner = try system.openDirectory(name.systemName, in: directory)
      try replaced?.preserveAccess(forDirectory: inner, named: name, system)
      try system.syncDirectory(inner)
    }
    try replaced?.preserveAccess(forDirectory: directory, named: nil, system)
    try system.syncDirectory(directory)
  }
}
