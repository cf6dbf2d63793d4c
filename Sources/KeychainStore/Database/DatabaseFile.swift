import Foundation

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The file of a keychain database, before SQLite sees it.
enum DatabaseFile {
  /// What only its owner may read; SQLite gives the files beside it (`-wal`, `-shm`) the same mode.
  static let mode: mode_t = 0o600
  /// What `S_IFMT` masks and what a regular file has there (POSIX `sys/stat.h`).
  private static let typeMask: mode_t = 0o170000
  private static let regularFile: mode_t = 0o100000

  /// Makes an empty file of mode 0600, whatever the process's umask is.
  ///
  /// - Throws: `.io` where a file or a link is there already or the folder cannot be written, `.diskFull`.
  static func create(at path: String) throws(KeychainStoreError) {
    try refuseSidecars(of: path)
    let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode)
    guard descriptor >= 0 else { throw failure("cannot be created") }
    defer { close(descriptor) }
    guard fchmod(descriptor, mode) == 0 else { throw failure("cannot be given mode 0600") }
  }

  /// Checks that the path names a regular file, no link, and takes it from everyone but its owner.
  ///
  /// The file is not opened for it: closing any descriptor of a file drops the locks that this process's other
  /// connections hold on it (SQLite, "How To Corrupt An SQLite Database File", 2.2).
  static func secureExisting(at path: String) throws(KeychainStoreError) {
    for suffix in sidecarSuffixes {
      if let status = try status(of: path + suffix), status.st_mode & typeMask != regularFile {
        throw KeychainStoreError(.damaged, "the file beside it, keychain-2.db\(suffix), is no regular file")
      }
    }
    guard let status = try status(of: path) else { throw KeychainStoreError(.notAvailable, "there is no file") }
    guard status.st_mode & typeMask == regularFile else {
      throw KeychainStoreError(.damaged, "it is a link, a folder or another thing that is no file")
    }
    if status.st_mode & 0o077 != 0, chmod(path, mode) != 0 { throw failure("cannot be given mode 0600") }
  }

  /// Takes away what `create` has made, where it could not be finished.
  static func remove(at path: String) {
    for name in [path] + sidecarSuffixes.map({ path + $0 }) { unlink(name) }
  }

  private static let sidecarSuffixes = ["-wal", "-shm", "-journal"]

  /// Of the thing itself where it is a link; `nil` where there is nothing.
  private static func status(of path: String) throws(KeychainStoreError) -> stat? {
    var status = stat()
    if lstat(path, &status) == 0 { return status }
    guard errno == ENOENT || errno == ENOTDIR else { throw failure("cannot be examined") }
    return nil
  }

  /// A log left beside a database that is no more would be played into the new one.
  private static func refuseSidecars(of path: String) throws(KeychainStoreError) {
    for suffix in sidecarSuffixes where try status(of: path + suffix) != nil {
      throw KeychainStoreError(.io, "a file of another database, keychain-2.db\(suffix), is in the way")
    }
  }

  private static func failure(_ what: String) -> KeychainStoreError {
    let number = errno
    let code: KeychainStoreError.Code =
      switch number {
      case ENOSPC, EDQUOT: .diskFull
      case ENOENT, ENOTDIR: .notAvailable
      default: .io
      }
    return KeychainStoreError(code, "the file \(what): \(String(cString: strerror(number)))")
  }
}
