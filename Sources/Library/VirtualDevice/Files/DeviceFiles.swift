package import Basics
import KeychainFormats
import SystemPackage

/// Operations on the small files of a device, with device errors.
///
/// Files are created with mode 0600 and folders with 0700, regardless of the umask. A link in the last component of a
/// path is never followed.
package struct DeviceFiles: Sendable {
  package let system: FileSystem

  package init(_ system: FileSystem = .real) { self.system = system }

  /// Returns the error for a failed file operation.
  ///
  /// - Parameters:
  ///   - verb: The operation, such as "write".
  ///   - path: The path of the file.
  ///   - errno: The system error.
  ///   - byteCount: The free space that the operation needs, in bytes, or `nil` if unknown.
  static func failure(
    _ verb: String, _ path: String, _ errno: Errno, needs byteCount: Int? = nil
  ) -> KeyhaulError {
    let needed = errno.isDiskFull ? byteCount.map { " (needs \(HumanReadable.bytes($0)))" } ?? "" : ""
    return KeyhaulError(
      .deviceIO, path, "cannot \(verb) \(path): \(errno.reason)\(needed)", errno: errno)
  }

  private func translatingErrno<Value: ~Copyable>(
    _ verb: String, _ path: String, _ body: () throws(Errno) -> Value
  ) throws(KeyhaulError) -> Value {
    try converting({ Self.failure(verb, path, $0) }, body)
  }

  /// Announces a change of the keychain database. SQLite writes the database without this type, so a test that makes
  /// writes fail needs the announcement.
  func announceDatabaseChange(of path: String) throws(KeyhaulError) {
    try translatingErrno("write", path) { () throws(Errno) in try system.announceDatabaseChange() }
  }

  /// Runs a step after the commit of a change. An error of the step states that the change was made.
  ///
  /// - Parameters:
  ///   - remark: A clause about the state of the change, for the error.
  ///   - body: The step.
  func afterCommit<Value>(
    _ remark: String? = nil, _ body: () throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    try converting({ (error: KeyhaulError) in error.at(.afterCommit, remark) }, body)
  }

  /// Runs a step before the commit of a change. Even if the step has a commit of its own, its error states that the
  /// change was not made.
  func beforeCommit<Value>(
    _ body: () throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    try converting({ (error: KeyhaulError) in error.at(.beforeCommit) }, body)
  }

  /// Returns the kind of the file at a path, without following links, or `nil` if there is none.
  func kind(of path: String) throws(KeyhaulError) -> FileStatus.Kind? {
    try translatingErrno("look at", path) { () throws(Errno) in try system.status(of: path)?.kind }
  }

  /// Returns the bytes of a regular file, or `nil` if there is no file at the path.
  ///
  /// - Throws: `.deviceDamaged` if it is not a regular file or longer than `limit` bytes; `.deviceIO`.
  func read(_ path: String, atMost limit: Int) throws(KeyhaulError) -> [UInt8]? {
    let file: OwnedFileDescriptor
    do throws(Errno) {
      file = try system.openOwnFile(path)
    } catch {
      if error == .noSuchFileOrDirectory { return nil }
      if error == .tooManySymbolicLinkLevels { throw KeyhaulError(.deviceDamaged, path, "\(path) is a link") }
      throw Self.failure("open", path, error)
    }
    let raw = file.raw
    let status = try translatingErrno("look at", path) { () throws(Errno) in try system.status(of: raw) }
    guard status.kind == .file else { throw KeyhaulError(.deviceDamaged, path, "\(path) is not a regular file") }
    guard let size = Int(exactly: status.byteCount), size <= limit else {
      throw KeyhaulError(.deviceDamaged, path, "\(path) has \(status.byteCount) bytes; at most \(limit) are accepted")
    }
    return try bytes(of: file, count: size, path)
  }

  private func bytes(
    of file: borrowing OwnedFileDescriptor, count byteCount: Int, _ path: String
  ) throws(KeyhaulError) -> [UInt8] {
    let raw = file.raw
    var bytes = [UInt8](repeating: 0, count: byteCount)
    var offset = 0
    while offset < byteCount {
      let result = bytes.withUnsafeMutableBytes { buffer in
        Result { () throws(Errno) in
          try system.read(raw, at: Int64(offset), into: .init(rebasing: buffer[offset...]))
        }
      }
      let count = try result.mapError { Self.failure("read", path, $0) }.get()
      guard count > 0 else {
        throw KeyhaulError(.deviceDamaged, path, "\(path) became shorter while it was being read")
      }
      offset += count
    }
    return bytes
  }

  /// Creates and syncs a file. An existing file of this name is replaced.
  func create(_ path: String, _ bytes: [UInt8]) throws(KeyhaulError) {
    let destination = try destination(of: path)
    do throws(Errno) {
      try system.createFile(destination.name, in: try system.openDirectory(destination.parent), bytes: bytes)
    } catch {
      throw Self.failure("write", path, error, needs: bytes.count)
    }
  }

  /// Replaces the content of a file atomically.
  ///
  /// - Throws: `.deviceIO`. If the error's `stage` is `.afterCommit`, the content was replaced, but a power failure may
  ///   undo it.
  func replace(_ path: String, _ bytes: [UInt8]) throws(KeyhaulError) {
    let destination = try destination(of: path)
    var replacement = FileReplacement(destination, system)
    replacement.target = .anything
    replacement.temporaryName = destination.name + DeviceFile.stagedSuffix
    let result = try replacement.write(
      explaining: { refusal in
        switch refusal {
        case .system(let errno): Self.failure("write", path, errno, needs: bytes.count)
        case .occupied: KeyhaulError(.deviceDamaged, path, "\(path) is not a regular file")
        }
      },
      fill: { (file) throws(KeyhaulError) in
        do throws(Errno) {
          try system.writeAll(bytes, to: file)
        } catch {
          throw Self.failure("write", path, error, needs: bytes.count)
        }
        return Int64(bytes.count)
      })
    if let errno = result.nameFailure {
      throw Self.failure("sync", destination.parent, errno).at(.afterCommit)
    }
  }

  func rename(_ path: String, to target: String) throws(KeyhaulError) {
    try translatingErrno("rename", path) { () throws(Errno) in try system.rename(path, to: target) }
  }

  /// Removes a file, if it exists.
  func remove(_ path: String) throws(KeyhaulError) {
    try translatingErrno("remove", path) { () throws(Errno) in try system.remove(path) }
  }

  /// Syncs the names in a folder.
  func syncDirectory(_ path: String) throws(KeyhaulError) {
    try translatingErrno("sync", path) { () throws(Errno) in try system.syncDirectory(try system.openDirectory(path)) }
  }

  /// Creates a folder.
  ///
  /// - Throws: `.exists` if the path exists; `.deviceIO`.
  func makeDirectory(_ path: String) throws(KeyhaulError) {
    do throws(Errno) {
      try system.makeDirectory(path)
    } catch {
      if error == .fileExists { throw KeyhaulError(.exists, path, "\(path) already exists") }
      throw Self.failure("make", path, error)
    }
  }

  /// Returns the sorted names in a folder, or `nil` if it does not exist.
  func names(in path: String) throws(KeyhaulError) -> [String]? {
    do throws(Errno) {
      return try system.names(in: try system.openDirectory(path)).map(\.text).sorted()
    } catch {
      if error == .noSuchFileOrDirectory { return nil }
      throw Self.failure("list", path, error)
    }
  }

  /// Removes a folder, if it exists, with all its content. Links are not followed.
  func removeTree(_ path: String) throws(KeyhaulError) {
    let destination = try destination(of: path)
    try translatingErrno("remove", path) { () throws(Errno) in
      try system.removeTree(destination.name.systemName, in: try system.openDirectory(destination.parent))
    }
  }

  private func destination(of path: String) throws(KeyhaulError) -> DestinationPath {
    guard let destination = DestinationPath(path) else {
      throw KeyhaulError(.deviceIO, path, "\(path) is not a valid file name")
    }
    return destination
  }
}
