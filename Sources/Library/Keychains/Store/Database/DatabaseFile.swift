import Basics
import SystemPackage

/// The file of a keychain database, before SQLite opens it.
struct DatabaseFile {
  let path: String
  private let system: FileSystem

  init(at path: String, _ system: FileSystem = .real) {
    self.path = path
    self.system = system
  }

  /// The permissions of the database. SQLite gives its `-wal` and `-shm` files the same mode.
  private static let permissions: UInt32 = 0o600

  /// Creates an empty file of mode 0600, regardless of the process's umask.
  ///
  /// - Throws: `.storeIO` if a file or link already exists or the directory cannot be written to, `.diskFull`.
  func create() throws(KeyhaulError) {
    try rejectSidecars()
    let file = try translatingErrno("cannot be created") { () throws(Errno) in try system.createFile(path) }
    try translatingErrno("cannot be given mode 0600") { () throws(Errno) in
      try system.setPermissions(Self.permissions, of: file)
    }
  }

  /// Checks that the path names a regular file, not a link, and removes all permissions of other users.
  ///
  /// The file is not opened for this, because closing any descriptor of a file releases the locks that the process's
  /// other connections have on it (SQLite, "How To Corrupt An SQLite Database File", 2.2).
  ///
  /// - Throws: `.storeDamaged` if it is not a regular file; `.notAvailable` if there is no file.
  func secureExisting() throws(KeyhaulError) {
    for suffix in Self.sidecarSuffixes {
      if let status = try status(of: path + suffix), status.kind != .file {
        throw KeyhaulError(.storeDamaged, "the file beside it, keychain-2.db\(suffix), is not a regular file")
      }
    }
    guard let status = try status(of: path) else { throw KeyhaulError(.notAvailable, "there is no file") }
    guard status.kind == .file else {
      throw KeyhaulError(.storeDamaged, "it is not a regular file but a link, a folder or something else")
    }
    guard status.permissions & 0o077 != 0 else { return }
    try translatingErrno("cannot be given mode 0600") { () throws(Errno) in
      try system.setPermissions(Self.permissions, of: path)
    }
  }

  /// Removes the new file and its journal files after a failure.
  func remove() {
    for name in [path] + Self.sidecarSuffixes.map({ path + $0 }) { try? system.remove(name) }
  }

  private static let sidecarSuffixes = ["-wal", "-shm", "-journal"]

  /// Returns the status of the file at a path, or of the link itself if it is one; `nil` if there is no such file.
  private func status(of path: String) throws(KeyhaulError) -> FileStatus? {
    try translatingErrno("cannot be examined") { () throws(Errno) in try system.status(of: path) }
  }

  /// Checks that there are no journal files of a previous database, which SQLite would apply to the new one.
  ///
  /// - Throws: `.storeIO` if there is one.
  private func rejectSidecars() throws(KeyhaulError) {
    for suffix in Self.sidecarSuffixes where try status(of: path + suffix) != nil {
      throw KeyhaulError(.storeIO, "a file of another database, keychain-2.db\(suffix), is in the way")
    }
  }

  private func translatingErrno<Value: ~Copyable>(
    _ failure: String, _ body: () throws(Errno) -> Value
  ) throws(KeyhaulError) -> Value {
    do throws(Errno) {
      return try body()
    } catch {
      let code: KeyhaulError.Code = error.isDiskFull ? .diskFull : error.isNotFound ? .notAvailable : .storeIO
      throw KeyhaulError(code, "the file \(failure): \(error.reason)", errno: error)
    }
  }
}
