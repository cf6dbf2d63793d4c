import Basics
import SystemPackage

/// The file of a keychain database, before SQLite sees it.
struct DatabaseFile {
  let path: String
  private let system: FileSystem

  init(at path: String, _ system: FileSystem = .real) {
    self.path = path
    self.system = system
  }

  /// What only its owner may read; SQLite gives the files beside it (`-wal`, `-shm`) the same mode.
  private static let permissions: UInt32 = 0o600

  /// Makes an empty file of mode 0600, whatever the process's umask is.
  ///
  /// - Throws: `.storeIO` where a file or a link is there already or the directory cannot be written, `.diskFull`.
  func create() throws(KeyhaulError) {
    try refuseSidecars()
    let file = try calling("cannot be created") { () throws(Errno) in try system.createFile(path) }
    try calling("cannot be given mode 0600") { () throws(Errno) in
      try system.setPermissions(Self.permissions, of: file)
    }
  }

  /// Checks that the path names a regular file, no link, and takes it from everyone but its owner.
  ///
  /// The file is not opened for it: closing any descriptor of a file drops the locks that this process's other
  /// connections hold on it (SQLite, "How To Corrupt An SQLite Database File", 2.2).
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
    try calling("cannot be given mode 0600") { () throws(Errno) in
      try system.setPermissions(Self.permissions, of: path)
    }
  }

  /// Takes away what `create` has made, where it could not be finished.
  func remove() {
    for name in [path] + Self.sidecarSuffixes.map({ path + $0 }) { try? system.remove(name) }
  }

  private static let sidecarSuffixes = ["-wal", "-shm", "-journal"]

  /// Returns the status of the file at a path, or of the link itself if it is one; `nil` if there is no such file.
  private func status(of path: String) throws(KeyhaulError) -> FileStatus? {
    try calling("cannot be examined") { () throws(Errno) in try system.status(of: path) }
  }

  /// A log left beside a database that is no more would be played into the new one.
  private func refuseSidecars() throws(KeyhaulError) {
    for suffix in Self.sidecarSuffixes where try status(of: path + suffix) != nil {
      throw KeyhaulError(.storeIO, "a file of another database, keychain-2.db\(suffix), is in the way")
    }
  }

  private func calling<Value: ~Copyable>(
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
