package import Basics
import SystemPackage

/// A lock on a backup, so that a backup is changed by one process at a time, and by none while another reads it.
///
/// The lock is on the folder or file itself (`flock`), not on its path: it applies under every link and every name of the
/// backup, leaves no file behind, and ends with the process. It binds only processes that use it, as all commands of
/// `keyhaul` do. On a file system without locks, such as some network drives, there is no protection.
public final class BackupLock: Sendable {
  /// What the holder of a lock does with the backup.
  public enum Access: Sendable, Hashable {
    /// Reads it, possibly at the same time as other readers.
    case reading
    /// Changes or replaces it.
    case writing
  }

  /// What the lock allows.
  public let access: Access
  private let lock: FileLock

  private init(_ lock: consuming FileLock, _ access: Access) {
    self.lock = lock
    self.access = access
  }

  /// How often a waiting process tries again.
  private static let pause = Duration.milliseconds(20)

  /// Locks the backup at a path, which must stay locked from the first read to the last write.
  ///
  /// - Parameters:
  ///   - path: A folder or a file. Links are followed.
  ///   - access: What the caller does with the backup.
  ///   - limit: How long to wait for other processes.
  ///   - shouldContinue: Whether to go on waiting; asked at least every 20 ms.
  /// - Returns: `nil` if nothing can be locked: there is no file or folder, or its file system has no locks.
  /// - Throws: `.busy` if another process still has the backup, `.unreadable` if the system refuses.
  public static func acquire(
    _ path: String, for access: Access, wait limit: Duration = .zero, shouldContinue: @escaping () -> Bool = { true }
  ) throws(BackupArchiveError) -> BackupLock? {
    try acquire(path, for: access, wait: limit, shouldContinue: shouldContinue, system: .real)
  }

  package static func acquire(
    _ path: String, for access: Access, wait limit: Duration = .zero, shouldContinue: @escaping () -> Bool = { true },
    system: FileSystem
  ) throws(BackupArchiveError) -> BackupLock? {
    var wait = LockWait(atMost: limit, shouldContinue: shouldContinue)
    while true {
      switch try attempt(path, access, system) {
      case .locked(let lock): return BackupLock(lock, access)
      case .unavailable: return nil
      case .held:
        guard wait.pause(pause) else {
          throw BackupArchiveError(
            .busy, "another process is \(access == .reading ? "changing" : "reading or changing") it")
        }
      }
    }
  }

  private static func attempt(
    _ path: String, _ access: Access, _ system: FileSystem
  ) throws(BackupArchiveError) -> FileSystem.PathLock {
    do throws(Errno) {
      return try system.lock(at: path, access == .reading ? .shared : .exclusive)
    } catch {
      throw BackupArchiveError(.unreadable, "\(quoted(path)): \(error.reason)")
    }
  }

  /// Ends the lock before its last reference is gone.
  package func release() { lock.release() }
}
