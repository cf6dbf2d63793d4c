public import Basics
import Foundation

/// A cache of open sessions, so that consecutive calls of this process do not open the device each time.
///
/// A session is closed before this process opens the device in another way, and shortly after its last use. It is
/// closed after a second in any case, so that other processes wait no longer than a second.
final class SessionCache: Sendable {
  static let shared = SessionCache()
  /// The time after which an unused session is closed.
  private static let idleTimeout = Duration.milliseconds(100)
  /// The time after which a session in constant use is closed.
  private static let maximumAge = Duration.seconds(1)

  enum Lookup {
    case session(DeviceSession)
    /// There is no session. The caller must open a session, and check it in or drop it.
    case none
    /// A session is in use, possibly by the caller itself.
    case inUse
  }

  private struct Entry {
    /// The session, or `nil` while it is in use.
    var session: DeviceSession?
    /// Whether the session should be closed after its use.
    var shouldClose = false
    let openTime = ContinuousClock.now
    var lastUse = ContinuousClock.now
    var hasIdleTimer = false
  }

  /// Foundation's lock, because the thread sanitizer does not support `Mutex`.
  ///
  /// Unused sessions are closed while it is held. Otherwise, a thread could find no session in the cache, but the device
  /// would still be in use.
  private let lock = NSLock()
  /// The sessions by device folder. Protected by `lock`.
  private nonisolated(unsafe) var entries: [String: Entry] = [:]

  /// Looks up a device's session for exclusive use until it is checked in or dropped.
  func checkOut(_ directory: String) -> Lookup {
    lock.withLock {
      guard let entry = entries[directory] else {
        entries[directory] = Entry()
        return .none
      }
      guard let session = entry.session else { return .inUse }
      entries[directory]?.session = nil
      return .session(session)
    }
  }

  /// Returns a session to the cache, unless it should be closed.
  ///
  /// - Throws: An error if the session had to be closed and that failed.
  func checkIn(_ session: DeviceSession) throws(KeyhaulError) {
    let directory = session.device.directory
    let (isCached, needsIdleTimer) = lock.withLock {
      guard var entry = entries[directory], !entry.shouldClose, !session.isInvalidated,
        entry.openTime.duration(to: .now) < Self.maximumAge
      else {
        entries[directory] = nil
        return (false, false)
      }
      let needsIdleTimer = !entry.hasIdleTimer
      (entry.session, entry.lastUse, entry.hasIdleTimer) = (session, .now, true)
      entries[directory] = entry
      return (true, needsIdleTimer)
    }
    guard isCached else { return try session.close() }
    if needsIdleTimer, !startIdleTimer(directory) { close(of: directory) }
  }

  /// Removes a session that has ended or could not be opened.
  func drop(_ directory: String) { lock.withLock { entries[directory] = nil } }

  /// Closes a device's session, or marks it for closing if it is in use.
  func close(of directory: String) {
    lock.withLock {
      guard let entry = entries[directory] else { return }
      guard let session = entry.session else {
        entries[directory]?.shouldClose = true
        return
      }
      entries[directory] = nil
      session.invalidate()
    }
  }

  /// Closes the sessions of all devices below a folder that is about to be deleted.
  func close(below folder: String) {
    for directory in lock.withLock({ entries.keys.filter { $0.hasPrefix(folder + "/") } }) { close(of: directory) }
  }

  /// Starts a thread that closes the session when it has not been used for `idleTimeout`.
  ///
  /// - Returns: `false` if no thread can be started. The session must then not stay in the cache.
  private func startIdleTimer(_ directory: String) -> Bool {
    SecureThread.start { [self] in
      while true {
        Thread.sleep(forTimeInterval: Self.idleTimeout / .seconds(1))
        let isOpen = lock.withLock {
          guard let entry = entries[directory] else { return false }
          let isIdle = entry.lastUse.duration(to: .now) >= Self.idleTimeout
          guard isIdle, let session = entry.session else { return true }
          entries[directory] = nil
          session.invalidate()
          return false
        }
        if !isOpen { return }
      }
    } ended: {
    }
  }
}

extension VirtualDevice {
  /// Runs the closure with a session that stays open for further calls of this process.
  ///
  /// Changes are not synced to the disk, because this is for devices that exist only as long as their process.
  ///
  /// - Throws: The errors of `withSession`.
  package func withCachedSession<Value>(
    command: String, wait: Duration, _ body: (DeviceSession) throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    let cache = SessionCache.shared
    let session: DeviceSession
    switch cache.checkOut(directory) {
    case .session(let cachedSession): session = cachedSession
    case .inUse: return try withSession(.writing, verb: command, wait: wait, body)
    case .none:
      do throws(KeyhaulError) {
        session = try DeviceSession(self, .writing, command: command, wait: wait, isCached: true)
      } catch {
        cache.drop(directory)
        throw error
      }
    }
    let value: Value
    do throws(KeyhaulError) {
      value = try body(session)
    } catch {
      cache.drop(directory)
      session.invalidate()
      throw error
    }
    try cache.checkIn(session)
    return value
  }
}

extension VirtualDevice {
  /// Opens a session and completes an interrupted change.
  ///
  /// - Parameters:
  ///   - access: The kind of access.
  ///   - command: The command of the caller ("keyhaul restore"), for other processes.
  ///   - wait: The maximum wait for another process.
  /// - Returns: The session.
  /// - Throws: `.deviceBusy`, `.deviceNotFound`, `.deviceDamaged`, `.unsupportedVersion`, `.deviceIO`.
  public func openSession(
    _ access: DeviceAccess, verb command: String, wait: Duration = .zero
  ) throws(KeyhaulError) -> DeviceSession {
    try DeviceSession(self, access, command: command, wait: wait)
  }

  /// Runs the closure with a session. Its changes are on the disk when this method returns.
  ///
  /// - Parameters:
  ///   - access: The kind of access.
  ///   - command: The command of the caller ("keyhaul restore"), for other processes.
  ///   - wait: The longest wait for another process.
  ///   - body: The closure, which gets the session. The session must not be used afterwards.
  /// - Returns: The closure's result.
  /// - Throws: The errors of `openSession` and of the closure; `.deviceIO` or an error of the keychain if changes may
  ///   not be on the disk. The changes exist nevertheless if the error's `stage` is `.afterCommit`.
  public func withSession<Value>(
    _ access: DeviceAccess, verb command: String, wait: Duration = .zero,
    _ body: (DeviceSession) throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    let session = try openSession(access, verb: command, wait: wait)
    defer { session.invalidate() }
    let value = try body(session)
    try session.close()
    return value
  }
}
