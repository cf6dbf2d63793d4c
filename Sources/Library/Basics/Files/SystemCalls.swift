import CKeyhaul
import SystemPackage

#if canImport(Glibc)
  package import Glibc
#elseif canImport(Musl)
  package import Musl
#elseif canImport(Darwin)
  package import Darwin
#endif

/// The file system calls that `SystemPackage` lacks. Each call is made once, without retries.
enum SystemCalls {
  /// A file or directory name as the system stores it: bytes with a NUL at the end, not always UTF-8.
  typealias Name = UnsafePointer<CChar>

  /// The descriptor for the directory that relative paths start from. It has no effect on absolute paths.
  static let workingDirectory = FileDescriptor(rawValue: AT_FDCWD)

  /// Prevents an opened terminal from becoming this process's controlling terminal.
  static let noControllingTerminal = FileDescriptor.OpenOptions(rawValue: O_NOCTTY)

  static func open(
    _ name: Name, in directory: FileDescriptor, _ mode: FileDescriptor.AccessMode,
    _ options: FileDescriptor.OpenOptions, permissions: CInterop.Mode = 0
  ) throws(Errno) -> FileDescriptor {
    FileDescriptor(
      rawValue: try checked(openat(directory.rawValue, name, mode.rawValue | options.rawValue, permissions)))
  }

  /// Creates a file with an unpredictable name that only its owner can access.
  ///
  /// - Parameter pattern: The path, which ends in six `X` characters. They are replaced with the name.
  static func makeFile(_ pattern: inout [CChar]) throws(Errno) -> FileDescriptor {
    FileDescriptor(rawValue: try checked(mkstemp(&pattern)))
  }

  /// Makes the system close a descriptor in the programs that this process starts.
  static func setCloseOnExec(_ file: FileDescriptor) throws(Errno) {
    _ = try checked(fcntl(file.rawValue, F_SETFD, FD_CLOEXEC))
  }

  static func makeDirectory(_ name: Name, in directory: FileDescriptor, permissions: CInterop.Mode) throws(Errno) {
    _ = try checked(mkdirat(directory.rawValue, name, permissions))
  }

  static func setPermissions(_ permissions: CInterop.Mode, of file: FileDescriptor) throws(Errno) {
    _ = try checked(fchmod(file.rawValue, permissions))
  }

  /// Sets the permissions of a file by its name. A symbolic link is followed, because most systems have no permissions
  /// for symbolic links.
  static func setPermissions(_ permissions: CInterop.Mode, of name: Name, in directory: FileDescriptor) throws(Errno) {
    _ = try checked(fchmodat(directory.rawValue, name, permissions, 0))
  }

  static func setOwner(_ owner: CInterop.UserID, _ group: CInterop.GroupID, of file: FileDescriptor) throws(Errno) {
    _ = try checked(fchown(file.rawValue, owner, group))
  }

  static func rename(_ old: Name, to new: Name, in directory: FileDescriptor) throws(Errno) {
    _ = try checked(renameat(directory.rawValue, old, directory.rawValue, new))
  }

  static func rename(
    _ old: Name, in directory: FileDescriptor, to new: Name, in newDirectory: FileDescriptor
  ) throws(Errno) {
    _ = try checked(renameat(directory.rawValue, old, newDirectory.rawValue, new))
  }

  static func makeHardLink(
    _ old: Name, in directory: FileDescriptor, to new: Name, in newDirectory: FileDescriptor
  ) throws(Errno) {
    _ = try checked(linkat(directory.rawValue, old, newDirectory.rawValue, new, 0))
  }

  static func makeSymbolicLink(to target: Name, _ name: Name, in directory: FileDescriptor) throws(Errno) {
    _ = try checked(symlinkat(target, directory.rawValue, name))
  }

  /// Reads the target of a symbolic link, up to the size of the buffer, and returns its number of bytes.
  static func linkTarget(
    _ name: Name, in directory: FileDescriptor, into buffer: UnsafeMutableBufferPointer<CChar>
  ) throws(Errno) -> Int {
    guard let start = buffer.baseAddress else { return 0 }
    let count = readlinkat(directory.rawValue, name, start, buffer.count)
    guard count >= 0 else { throw Errno(rawValue: errno) }
    return count
  }

  /// Sets a file's modification and access times, in seconds since 1970.
  static func setModificationTime(_ seconds: Int64, of file: FileDescriptor) throws(Errno) {
    let time = timespec(tv_sec: Int(seconds), tv_nsec: 0)
    let times = [time, time]
    _ = try checked(futimens(file.rawValue, times))
  }

  /// Sets the modification and access times of a symbolic link itself.
  static func setModificationTime(_ seconds: Int64, ofLink name: Name, in directory: FileDescriptor) throws(Errno) {
    let time = timespec(tv_sec: Int(seconds), tv_nsec: 0)
    _ = try checked(utimensat(directory.rawValue, name, [time, time], AT_SYMLINK_NOFOLLOW))
  }

  /// Returns the number of bytes that this user may still write to an open file's file system.
  static func freeByteCount(of file: FileDescriptor) throws(Errno) -> Int64 {
    var status = statvfs()
    _ = try checked(fstatvfs(file.rawValue, &status))
    let (bytes, overflow) = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
    return overflow ? .max : Int64(clamping: bytes)
  }

  /// Exchanges two names in one step.
  ///
  /// - Throws: `.noFunction` or another error if the file system does not support it.
  static func exchange(_ first: Name, _ second: Name, in directory: FileDescriptor) throws(Errno) {
    _ = try checked(keyhaul_exchange(directory.rawValue, first, second))
  }

  /// Renames an entry to a name that must not exist yet.
  ///
  /// - Throws: `.fileExists` if the new name exists; `.noFunction` or another error if the file system cannot check.
  static func rename(_ old: Name, toNew new: Name, in directory: FileDescriptor) throws(Errno) {
    _ = try checked(keyhaul_rename_new(directory.rawValue, old, new))
  }

  static func remove(_ name: Name, in directory: FileDescriptor, isDirectory: Bool) throws(Errno) {
    _ = try checked(unlinkat(directory.rawValue, name, isDirectory ? AT_REMOVEDIR : 0))
  }

  /// Syncs a file to the disk. On Apple's systems, `fsync` leaves the data in the disk's cache.
  static func synchronize(_ file: FileDescriptor) throws(Errno) {
    #if canImport(Darwin)
      if fcntl(file.rawValue, F_FULLFSYNC) == 0 { return }
    #endif
    _ = try checked(fsync(file.rawValue))
  }

  /// Syncs everything that was written to the file system of an open file or directory.
  ///
  /// Linux 5.8 and later report write errors. Source: syncfs(2).
  static func synchronizeFileSystem(_ file: FileDescriptor) throws(Errno) {
    #if canImport(Darwin)
      try synchronize(file)
    #else
      _ = try checked(keyhaul_sync_file_system(file.rawValue))
    #endif
  }

  /// On Apple's systems, moves a file's data from the system's cache to the disk's cache, for a later
  /// `synchronizeFileSystem(_:)`. Elsewhere, does nothing.
  static func startWriteback(_ file: FileDescriptor) throws(Errno) {
    #if canImport(Darwin)
      _ = try checked(fsync(file.rawValue))
    #endif
  }

  /// Locks a file without waiting.
  ///
  /// - Throws: `.wouldBlock` if another process has a conflicting lock.
  static func lock(_ file: FileDescriptor, isShared: Bool) throws(Errno) {
    _ = try checked(flock(file.rawValue, (isShared ? LOCK_SH : LOCK_EX) | LOCK_NB))
  }

  /// Releases a lock for every copy of the descriptor, in this process and in others.
  static func unlock(_ file: FileDescriptor) { _ = flock(file.rawValue, LOCK_UN) }

  /// Sleeps for a duration, or until a signal arrives.
  static func sleep(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    var interval = timespec()
    interval.tv_sec = .init(clamping: seconds)
    interval.tv_nsec = .init(clamping: attoseconds / 1_000_000_000)
    nanosleep(&interval, nil)
  }

  /// Returns the names in a directory, without `.` and `..`, each with a NUL at its end.
  ///
  /// - Parameter directory: An open directory. This call closes it.
  static func names(ofClosing directory: FileDescriptor) throws(Errno) -> [[CChar]] {
    guard let stream = fdopendir(directory.rawValue) else {
      let failure = Errno(rawValue: errno)
      _ = close(directory.rawValue)
      throw failure
    }
    defer { closedir(stream) }
    var names: [[CChar]] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else {
        if errno != 0 { throw Errno(rawValue: errno) }
        return names
      }
      let name = DirectoryEntry.name(of: entry)
      if name.elementsEqual(".".utf8) || name.elementsEqual("..".utf8) { continue }
      names.append(name.map { CChar(bitPattern: $0) } + [0])
    }
  }

  /// Returns the times of the last change to a file's content and to its status, in seconds and nanoseconds.
  static func changeTimes(in status: Stat) -> [Int] {
    [status.st_mtim, status.st_ctim].flatMap { [Int($0.tv_sec), Int($0.tv_nsec)] }
  }

  /// The effective user of this process.
  static var user: CInterop.UserID { geteuid() }

  /// The path of the working directory.
  static func workingDirectoryPath() throws(Errno) -> String {
    guard let path = getcwd(nil, 0) else { throw Errno(rawValue: errno) }
    defer { free(path) }
    return String(cString: path)
  }

  /// The directory for temporary files.
  static var temporaryDirectory: String {
    guard let name = getenv("TMPDIR").map({ String(cString: $0) }), !name.isEmpty else { return "/tmp" }
    return name
  }

  private static func checked(_ result: CInt) throws(Errno) -> CInt {
    guard result >= 0 else { throw Errno(rawValue: errno) }
    return result
  }
}

/// Reads directory entries as `readdir` returns them.
package enum DirectoryEntry {
  /// Returns the bytes of the entry's name, without the NUL at its end.
  ///
  /// A record is only as long as its name requires, usually shorter than `dirent`, whose name field fits the longest
  /// name. It is therefore read in place: copying a complete `dirent` would also read the memory after it.
  /// Source: readdir(3), "the size of the array".
  package static func name(of entry: UnsafePointer<dirent>) -> [UInt8] {
    guard let lengthOffset = MemoryLayout<dirent>.offset(of: \.d_reclen),
      let nameOffset = MemoryLayout<dirent>.offset(of: \.d_name)
    else { return [] }
    let record = UnsafeRawPointer(entry)
    let length = Int(record.loadUnaligned(fromByteOffset: lengthOffset, as: UInt16.self))
    guard length > nameOffset else { return [] }
    return Array(UnsafeRawBufferPointer(start: record + nameOffset, count: length - nameOffset).prefix { $0 != 0 })
  }
}
