import CArchive
import KeychainFormats

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

extension FileSystem {
  /// A name as the system keeps it: bytes with a NUL at the end, not always UTF-8.
  typealias Name = [CChar]

  /// Opens a folder that the user named; links in the path are followed.
  func openDirectory(_ path: String) throws(SystemFailure) -> Descriptor {
    Descriptor(raw: try perform(.open) { _ in open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) })
  }

  func openDirectory(_ name: Name, in parent: borrowing Descriptor) throws(SystemFailure) -> Descriptor {
    let raw = parent.raw
    return Descriptor(
      raw: try perform(.open) { _ in openat(raw, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) })
  }

  /// Opens the folder that a link in a folder of the user's leads to.
  func openLinkedDirectory(_ name: Name, in parent: borrowing Descriptor) throws(SystemFailure) -> Descriptor {
    let raw = parent.raw
    return Descriptor(raw: try perform(.open) { _ in openat(raw, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC) })
  }

  /// Opens what the user named for reading. Never waits for the other end of a pipe.
  func openForReading(_ path: String) throws(SystemFailure) -> Descriptor {
    Descriptor(raw: try perform(.open) { _ in open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC) })
  }

  /// Opens an entry of a folder for reading. A link fails with ELOOP; a pipe without a writer opens without waiting.
  func openForReading(_ name: String, in parent: borrowing Descriptor) throws(SystemFailure) -> Descriptor {
    let raw = parent.raw
    return Descriptor(
      raw: try perform(.open) { _ in openat(raw, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC) })
  }

  /// Creates a file that isn't there yet, for its owner alone.
  func createFile(_ name: String, in parent: borrowing Descriptor) throws(SystemFailure) -> Descriptor {
    let raw = parent.raw
    return Descriptor(
      raw: try perform(.open) { _ in openat(raw, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600) })
  }

  /// Creates a file for its owner alone and takes its name away at once.
  func createNamelessFile(in folder: String) throws(SystemFailure) -> Descriptor {
    var name: [CChar] = []
    let raw = try perform(.open) { _ in
      // A call that was interrupted has used its pattern up.
      name = Array("\(folder)/keyhaul-XXXXXX".utf8CString)
      return mkstemp(&name)
    }
    let file = Descriptor(raw: raw)
    try perform(.remove) { _ in unlink(name) }
    // What a child process inherits is not ours alone any more.
    try perform(.open) { _ in fcntl(raw, F_SETFD, FD_CLOEXEC) }
    return file
  }

  /// Reads from a place of a file, wherever its own position is; 0 at the end.
  func read(
    _ file: Int32, at offset: Int64, into buffer: UnsafeMutableRawBufferPointer
  ) throws(SystemFailure) -> Int {
    try perform(.read) { short in
      pread(file, buffer.baseAddress, short ? (buffer.count + 1) / 2 : buffer.count, off_t(offset))
    }
  }

  /// Marks a file or a folder as being written, for as long as the descriptor is open.
  ///
  /// - Returns: Whether nobody else has; always `false` on a file system that knows no such marks.
  func claim(_ file: borrowing Descriptor) -> Bool { flock(file.raw, LOCK_EX | LOCK_NB) == 0 }

  func makeDirectory(_ name: String, in parent: borrowing Descriptor) throws(SystemFailure) {
    let raw = parent.raw
    try perform(.makeDirectory) { _ in mkdirat(raw, name, 0o700) }
  }

  /// Gives a file or a folder that was just made other permissions than its owner's alone.
  func setPermissions(_ permissions: UInt32, of made: borrowing Descriptor) throws(SystemFailure) {
    let raw = made.raw
    try perform(.makeDirectory) { _ in fchmod(raw, mode_t(truncatingIfNeeded: permissions)) }
  }

  /// Gives a file that was just made to another owner and group, where the system lets this user.
  func giveAway(_ file: borrowing Descriptor, to status: FileStatus) {
    _ = fchown(file.raw, status.owner, status.group)
  }

  func status(of file: Int32) throws(SystemFailure) -> FileStatus {
    var status = stat()
    try perform(.status) { _ in fstat(file, &status) }
    return FileStatus(status)
  }

  /// What stands at `name`, a link being what it is; `nil` where nothing does.
  func status(of name: Name, in parent: borrowing Descriptor) throws(SystemFailure) -> FileStatus? {
    let raw = parent.raw
    var status = stat()
    do {
      try perform(.status) { _ in fstatat(raw, name, &status, AT_SYMLINK_NOFOLLOW) }
    } catch  where error.number == ENOENT {
      return nil
    }
    return FileStatus(status)
  }

  package func isDirectory(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  func read(_ file: Int32, into buffer: UnsafeMutableRawBufferPointer) throws(SystemFailure) -> Int {
    try perform(.read) { short in
      #if canImport(Glibc)
        Glibc.read(file, buffer.baseAddress, short ? (buffer.count + 1) / 2 : buffer.count)
      #elseif canImport(Musl)
        Musl.read(file, buffer.baseAddress, short ? (buffer.count + 1) / 2 : buffer.count)
      #else
        Darwin.read(file, buffer.baseAddress, short ? (buffer.count + 1) / 2 : buffer.count)
      #endif
    }
  }

  /// Writes every byte, in as many calls as the system takes.
  func writeAll(_ bytes: UnsafeRawBufferPointer, to file: Int32) throws(SystemFailure) {
    var written = 0
    while written < bytes.count {
      let rest = UnsafeRawBufferPointer(rebasing: bytes[written...])
      let count = try perform(.write) { short in
        write(file, rest.baseAddress, short ? (rest.count + 1) / 2 : rest.count)
      }
      if count == 0 { throw SystemFailure(number: EIO) }
      written += count
    }
  }

  func writeAll(_ bytes: [UInt8], to file: Int32) throws(SystemFailure) {
    try bytes.withRawBytes { (buffer) throws(SystemFailure) in try writeAll(buffer, to: file) }
  }

  /// Asks the disk to keep what was written.
  func sync(_ file: borrowing Descriptor) throws(SystemFailure) {
    let raw = file.raw
    try perform(.sync) { _ in
      #if canImport(Darwin)
        fcntl(raw, F_FULLFSYNC) == 0 ? 0 : fsync(raw)
      #else
        fsync(raw)
      #endif
    }
  }

  /// Checks that a file which was written has the length it should, asks the disk to keep it, and closes it.
  func seal(_ file: consuming Descriptor, byteCount: Int64) throws(SystemFailure) {
    guard try status(of: file.raw).byteCount == byteCount else { throw SystemFailure(number: EIO) }
    try sync(file)
    try file.close(self)
  }

  /// Asks the disk to keep a folder's names; file systems that can't be asked are passed over.
  func syncDirectory(_ folder: borrowing Descriptor) throws(SystemFailure) {
    do {
      try sync(folder)
    } catch  where error.number == ENOTSUP || error.number == EINVAL {
      return
    }
  }

  func rename(_ old: String, to new: String, in parent: borrowing Descriptor) throws(SystemFailure) {
    let raw = parent.raw
    try perform(.rename) { _ in renameat(raw, old, raw, new) }
  }

  /// Lets two names change places in one step, where the file system can.
  func exchange(_ first: String, _ second: String, in parent: borrowing Descriptor) throws(SystemFailure) {
    let raw = parent.raw
    try perform(.exchange) { _ in keyhaul_exchange(raw, first, second) }
  }

  func remove(_ name: Name, in parent: borrowing Descriptor, isDirectory: Bool) throws(SystemFailure) {
    let raw = parent.raw
    try perform(.remove) { _ in unlinkat(raw, name, isDirectory ? AT_REMOVEDIR : 0) }
  }

  func seek(_ file: Int32, to offset: Int64) throws(SystemFailure) {
    try perform(.seek) { _ in lseek(file, off_t(offset), SEEK_SET) }
  }

  /// The names in a folder, without `.` and `..`, in no particular order.
  func names(in folder: borrowing Descriptor) throws(SystemFailure) -> [Name] {
    let raw = folder.raw
    let copy = try perform(.list) { _ in openat(raw, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
    guard let stream = fdopendir(copy) else {
      let number = errno
      _ = Descriptor(raw: copy)
      throw SystemFailure(number: number)
    }
    defer { closedir(stream) }
    var names: [Name] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        if errno != 0 { throw SystemFailure(number: errno) }
        return names
      }
      let name = DirectoryEntry.name(of: entry).map { CChar(bitPattern: $0) } + [0]
      if name != [46, 0] && name != [46, 46, 0] { names.append(name) }
    }
  }

  /// Removes a folder's tree without following a link, or a single file. What is gone already is no failure.
  func removeTree(_ name: Name, in parent: borrowing Descriptor, depth: Int = 0) throws(SystemFailure) {
    guard let status = try status(of: name, in: parent) else { return }
    guard status.kind == .directory else { return try remove(name, in: parent, isDirectory: false) }
    guard depth < Self.deepestTree else { throw SystemFailure(number: ELOOP) }
    let folder = try openDirectory(name, in: parent)
    for child in try names(in: folder) {
      try removeTree(child, in: folder, depth: depth + 1)
    }
    try remove(name, in: parent, isDirectory: true)
  }

  /// A backup's folder is two levels deep; nobody's is deeper than this.
  private static let deepestTree = 64
}

extension String {
  var systemName: FileSystem.Name { Array(utf8CString) }
}
