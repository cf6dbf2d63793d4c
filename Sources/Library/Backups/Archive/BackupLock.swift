package import Basics
import SystemPackage

/// A file lock on a backup. Several processes can read a backup together. A process that changes it excludes all others.
///
/// The lock is on the folder or file itself (`flock`), not on its path, so it applies under every link and name of the
/// backup. It leaves no file behind and ends with the process. It has an effect only on processes that also lock the
/// backup, as all `keyhaul` commands do. A file system without file locks, such as some network drives, gives no
/// protection.
package final class BackupLock: Sendable {
  /// The use of the backup that a lock protects.
  package enum Access: Sendable, Hashable {
    /// Reading, possibly together with other readers.
    case reading
    /// Changing or replacing the backup.
    case writing
  }

  /// The use that the lock protects.
  package let access: Access
  private let lock: FileLock

  private init(_ lock: consuming FileLock, _ access: Access) {
    self.lock = lock
    self.access = access
  }

  /// The pause before a waiting process tries again.
  private static let pause = Duration.milliseconds(20)

  /// Locks the backup at a path. The lock must last from the first read to the last write.
  ///
  /// - Parameters:
  ///   - path: The path of a folder or a file. Links are followed.
  ///   - access: The caller's use of the backup.
  ///   - limit: The maximum time to wait for other processes.
  ///   - shouldContinue: Returns whether to keep waiting. Called at least every 20 ms.
  /// - Returns: The lock, or `nil` if nothing exists at the path or its file system does not support file locks.
  /// - Throws: `.busy` if another process still uses the backup, `.unreadable` if the system refuses the lock.
  package static func acquire(
    _ path: String, for access: Access, wait limit: Duration = .zero, shouldContinue: @escaping () -> Bool = { true }
  ) throws(KeyhaulError) -> BackupLock? {
    try acquire(path, for: access, wait: limit, shouldContinue: shouldContinue, system: .real)
  }

  /// Locks the backup at a path, in a file system that tests can replace.
  package static func acquire(
    _ path: String, for access: Access, wait limit: Duration = .zero, shouldContinue: @escaping () -> Bool = { true },
    system: FileSystem
  ) throws(KeyhaulError) -> BackupLock? {
    var timeout = LockTimeout(atMost: limit, shouldContinue: shouldContinue)
    while true {
      switch try attempt(path, access, system) {
      case .locked(let lock): return BackupLock(lock, access)
      case .unavailable: return nil
      case .lockedElsewhere:
        guard timeout.pause(pause) else {
          throw KeyhaulError(
            .busy, "another process is \(access == .reading ? "changing" : "reading or changing") it")
        }
      }
    }
  }

  private static func attempt(
    _ path: String, _ access: Access, _ system: FileSystem
  ) throws(KeyhaulError) -> FileSystem.PathLock {
    do throws(Errno) {
      return try system.lock(at: path, access == .reading ? .shared : .exclusive)
    } catch {
      throw KeyhaulError(.unreadable, "\(quoted(path)): \(error.reason)", errno: error)
    }
  }

  /// Releases the lock early.
  package func release() { lock.release() }
}
