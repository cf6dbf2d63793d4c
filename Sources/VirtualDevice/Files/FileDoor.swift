import KeychainFormats

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// One thing the file system is asked to do. Tests let the k-th of them fail.
package enum FileStep: Sendable, Hashable {
  case makeFolder(String)
  case create(String)
  case write(String)
  case sync(String)
  case rename(String, to: String)
  case remove(String)
  case syncFolder(String)
  /// A transaction or a file change that the keychain's database does by itself.
  case keychain(String)
}

/// The one place through which a device's small files are read and written.
///
/// Files are made 0600 and folders 0700 whatever the umask is. A link is never followed at the last name of a path.
package struct FileDoor: Sendable {
  /// Called before each step; a number other than 0 is the system error the step shall fail with.
  package var before: @Sendable (FileStep) -> CInt

  package init(before: @escaping @Sendable (FileStep) -> CInt = { _ in 0 }) { self.before = before }

  /// Announces a step that another layer does.
  func announce(_ step: FileStep, of path: String) throws(VirtualDeviceError) {
    let code = before(step)
    if code != 0 { throw Self.failure("write", path, code) }
  }

  static func failure(_ verb: String, _ path: String, _ code: CInt) -> VirtualDeviceError {
    VirtualDeviceError(.io, path, "cannot \(verb) \(path): \(String(cString: strerror(code)))", systemError: code)
  }

  /// What is left to do once a change is made: what fails here takes nothing back, and its error says so.
  ///
  /// - Parameter remark: What is true of the change then, as a clause.
  func committed<Value>(
    _ remark: String? = nil, _ body: () throws(VirtualDeviceError) -> Value
  ) throws(VirtualDeviceError) -> Value {
    do throws(VirtualDeviceError) { return try body() } catch { throw error.at(.afterCommit, remark) }
  }

  /// A step that commits something of its own on the way to a change that is not made yet.
  func uncommitted<Value>(
    _ body: () throws(VirtualDeviceError) -> Value
  ) throws(VirtualDeviceError) -> Value {
    do throws(VirtualDeviceError) { return try body() } catch { throw error.at(.beforeCommit) }
  }

  /// The kind of thing at a path, links not followed.
  enum Presence { case absent, file, folder, other }

  func presence(of path: String) throws(VirtualDeviceError) -> Presence {
    var status = stat()
    guard lstat(path, &status) == 0 else {
      let code = errno
      if code == ENOENT || code == ENOTDIR { return .absent }
      throw Self.failure("look at", path, code)
    }
    switch status.st_mode & S_IFMT {
    case S_IFREG: return .file
    case S_IFDIR: return .folder
    default: return .other
    }
  }

  /// The bytes of a regular file, or `nil` where there is none.
  ///
  /// - Throws: `.damaged` where it is no regular file or longer than `limit` bytes; `.io`.
  func read(_ path: String, atMost limit: Int) throws(VirtualDeviceError) -> [UInt8]? {
    // Without O_NONBLOCK, opening a pipe that stands in a file's place would wait for ever.
    let file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else {
      let code = errno
      if code == ENOENT { return nil }
      if code == ELOOP { throw VirtualDeviceError(.damaged, path, "\(path) is a link") }
      throw Self.failure("open", path, code)
    }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw Self.failure("look at", path, errno) }
    guard status.st_mode & S_IFMT == S_IFREG else {
      throw VirtualDeviceError(.damaged, path, "\(path) is not a regular file")
    }
    guard let size = Int(exactly: status.st_size), size <= limit else {
      throw VirtualDeviceError(.damaged, path, "\(path) has \(status.st_size) bytes; at most \(limit) are accepted")
    }
    var bytes = [UInt8](repeating: 0, count: size)
    var count = 0
    while count < size {
      let done = bytes.withUnsafeMutableBytes { buffer in
        pread(file, buffer.baseAddress.map { $0 + count }, size - count, off_t(count))
      }
      if done < 0, errno == EINTR { continue }
      guard done >= 0 else { throw Self.failure("read", path, errno) }
      guard done > 0 else { throw VirtualDeviceError(.damaged, path, "\(path) became shorter while it was read") }
      count += done
    }
    return bytes
  }

  /// Makes a file with these bytes, synced. A file of this name that is there already is made anew.
  func create(_ path: String, _ bytes: [UInt8]) throws(VirtualDeviceError) {
    try announce(.create(path), of: path)
    if unlink(path) != 0, errno != ENOENT { throw Self.failure("replace", path, errno) }
    let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw Self.failure("make", path, errno) }
    var isOpen = true
    defer { if isOpen { close(file) } }
    guard fchmod(file, 0o600) == 0 else { throw Self.failure("set the mode of", path, errno) }
    try announce(.write(path), of: path)
    var count = 0
    while count < bytes.count {
      let done = bytes.withUnsafeBytes { buffer in
        #if canImport(Darwin)
          Darwin.write(file, buffer.baseAddress.map { $0 + count }, bytes.count - count)
        #elseif canImport(Musl)
          Musl.write(file, buffer.baseAddress.map { $0 + count }, bytes.count - count)
        #else
          Glibc.write(file, buffer.baseAddress.map { $0 + count }, bytes.count - count)
        #endif
      }
      if done < 0, errno == EINTR { continue }
      guard done > 0 else { throw Self.failure("write", path, done < 0 ? errno : EIO) }
      count += done
    }
    try announce(.sync(path), of: path)
    guard Self.flush(file) == 0 else { throw Self.failure("sync", path, errno) }
    isOpen = false
    guard close(file) == 0 || errno == EINTR else { throw Self.failure("close", path, errno) }
  }

  /// Puts these bytes in the place of a file: the old or the new ones are there at any moment.
  ///
  /// - Throws: `.io`; of stage `afterCommit` where the new ones are there and only their name may not be durable.
  func replace(_ path: String, _ bytes: [UInt8], in folder: String) throws(VirtualDeviceError) {
    let beside = path + DeviceFile.stagedSuffix
    do throws(VirtualDeviceError) {
      try create(beside, bytes)
      try rename(beside, to: path)
    } catch {
      try? remove(beside)
      throw error
    }
    try committed { () throws(VirtualDeviceError) in try syncFolder(folder) }
  }

  func rename(_ path: String, to target: String) throws(VirtualDeviceError) {
    try announce(.rename(path, to: target), of: path)
    guard Self.moved(path, target) == 0 else { throw Self.failure("rename", path, errno) }
  }

  /// Removes a file; one that is not there is no error.
  func remove(_ path: String) throws(VirtualDeviceError) {
    try announce(.remove(path), of: path)
    guard unlink(path) == 0 || errno == ENOENT else { throw Self.failure("remove", path, errno) }
  }

  /// Makes the names in a folder durable.
  func syncFolder(_ path: String) throws(VirtualDeviceError) {
    try announce(.syncFolder(path), of: path)
    let folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard folder >= 0 else { throw Self.failure("open", path, errno) }
    defer { close(folder) }
    // Some file systems have no such call for folders; there is nothing to be done about that.
    guard Self.flush(folder) == 0 || errno == EINVAL || errno == ENOTSUP else {
      throw Self.failure("sync", path, errno)
    }
  }

  /// - Throws: `.exists` where something of this name is there; `.io`.
  func makeFolder(_ path: String) throws(VirtualDeviceError) {
    try announce(.makeFolder(path), of: path)
    guard mkdir(path, 0o700) == 0 else {
      let code = errno
      if code == EEXIST { throw VirtualDeviceError(.exists, path, "\(path) is there already") }
      throw Self.failure("make", path, code)
    }
    guard chmod(path, 0o700) == 0 else { throw Self.failure("set the mode of", path, errno) }
  }

  /// The names in a folder, sorted, or `nil` where there is no folder.
  func names(in path: String) throws(VirtualDeviceError) -> [String]? {
    guard let folder = opendir(path) else {
      let code = errno
      if code == ENOENT { return nil }
      throw Self.failure("list", path, code)
    }
    defer { closedir(folder) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = readdir(folder) else {
        if errno != 0 { throw Self.failure("list", path, errno) }
        return names.sorted()
      }
      let name = String(decoding: DirectoryEntry.name(of: entry), as: UTF8.self)
      if name != ".", name != ".." { names.append(name) }
    }
  }

  /// Removes a folder of plain files, as a device is; folders inside it are removed as well, links are not followed.
  func removeTree(_ path: String) throws(VirtualDeviceError) {
    for name in try names(in: path) ?? [] {
      let child = path + "/" + name
      if try presence(of: child) == .folder { try removeTree(child) } else { try remove(child) }
    }
    try announce(.remove(path), of: path)
    guard rmdir(path) == 0 || errno == ENOENT else { throw Self.failure("remove", path, errno) }
  }

  private static func flush(_ file: CInt) -> CInt {
    #if canImport(Darwin)
      if fcntl(file, F_FULLFSYNC) == 0 { return 0 }
    #endif
    return fsync(file)
  }

  private static func moved(_ path: String, _ target: String) -> CInt {
    #if canImport(Darwin)
      Darwin.rename(path, target)
    #elseif canImport(Musl)
      Musl.rename(path, target)
    #else
      Glibc.rename(path, target)
    #endif
  }
}
