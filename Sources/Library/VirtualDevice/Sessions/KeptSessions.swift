public import Basics
import Foundation

/// Sessions that stay open between the calls of this process, so that a call does not open its device again.
///
/// One is let go of before anyone of this process opens the device in another way, when nobody used it for a moment, and
/// after a second in any case: to another process the device is busy no longer than that, whose turn it is then.
final class KeptSessions: Sendable {
  static let ofThisProcess = KeptSessions()
  /// How long a session stays that nobody uses.
  private static let idle = Duration.milliseconds(100)
  /// How long a session is kept that is used without a break.
  private static let longest = Duration.seconds(1)

  enum Taken {
    case session(DeviceSession)
    /// There is none. Whoever was told so opens one, and gives it back or drops it.
    case none
    /// Somebody is using it, who may be the one that asks.
    case inUse
  }

  private struct Entry {
    /// `nil` while it is in use.
    var session: DeviceSession?
    /// Whether somebody waits for it to be let go of.
    var isWanted = false
    let begin = ContinuousClock.now
    var lastUse = ContinuousClock.now
    var isWatched = false
  }

  /// The system's lock and no `Mutex`, which the thread sanitizer does not see into.
  private let lock = NSLock()
  /// By the devices' directories. Behind `lock`.
  private nonisolated(unsafe) var entries: [String: Entry] = [:]

  /// Takes a device's session, to use it alone until it is given back or dropped.
  func take(_ directory: String) -> Taken {
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

  /// Keeps a session that was taken or opened, unless somebody waits for its end.
  ///
  /// - Throws: Where it had to be finished and could not be.
  func giveBack(_ session: DeviceSession) throws(KeyhaulError) {
    let directory = session.device.directory
    let (isKept, isNewlyWatched) = lock.withLock {
      guard var entry = entries[directory], !entry.isWanted, !session.hasEnded,
        entry.begin.duration(to: .now) < Self.longest
      else {
        entries[directory] = nil
        return (false, false)
      }
      let isNewlyWatched = !entry.isWatched
      (entry.session, entry.lastUse, entry.isWatched) = (session, .now, true)
      entries[directory] = entry
      return (true, isNewlyWatched)
    }
    guard isKept else { return try session.finish() }
    if isNewlyWatched, !watch(directory) { letGo(of: directory) }
  }

  /// Forgets a session that was taken and has ended, or could not be opened.
  func drop(_ directory: String) { lock.withLock { entries[directory] = nil } }

  /// Ends a device's session; one that is in use ends with that use.
  func letGo(of directory: String) {
    let session = lock.withLock {
      guard let entry = entries[directory] else { return DeviceSession?.none }
      guard let session = entry.session else {
        entries[directory]?.isWanted = true
        return nil
      }
      entries[directory] = nil
      return session
    }
    session?.end()
  }

  /// Ends the sessions of all devices below a directory that is about to go.
  func letGo(below home: String) {
    for directory in lock.withLock({ entries.keys.filter { $0.hasPrefix(home + "/") } }) { letGo(of: directory) }
  }

  /// Checks regularly, on a separate thread, whether the session is still used, and stops when it is not.
  ///
  /// - Returns: `false` if no thread can be started. The session must then not be kept.
  private func watch(_ directory: String) -> Bool {
    SecureThread.start { [self] in
      while true {
        Thread.sleep(forTimeInterval: Self.idle / .seconds(1))
        let (isOpen, idle) = lock.withLock {
          guard let entry = entries[directory] else { return (false, DeviceSession?.none) }
          let isIdle = entry.lastUse.duration(to: .now) >= Self.idle
          guard isIdle, let session = entry.session else { return (true, nil) }
          entries[directory] = nil
          return (false, session)
        }
        idle?.end()
        if !isOpen { return }
      }
    } ended: {
    }
  }
}

extension VirtualDevice {
  /// Holds the device for the length of the closure, through a session that stays open for the next such call of this
  /// process.
  ///
  /// Nothing is waited for to be on a disk: this is for devices that end with their process.
  ///
  /// - Throws: As `withSession`.
  package func withKeptSession<Value>(
    verb: String, wait: Duration, _ body: (DeviceSession) throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    let kept = KeptSessions.ofThisProcess
    let session: DeviceSession
    switch kept.take(directory) {
    case .session(let idle): session = idle
    case .inUse: return try withSession(.writing, verb: verb, wait: wait, body)
    case .none:
      do throws(KeyhaulError) {
        session = try DeviceSession(self, .writing, verb: verb, wait: wait, isKept: true)
      } catch {
        kept.drop(directory)
        throw error
      }
    }
    let value: Value
    do throws(KeyhaulError) {
      value = try body(session)
    } catch {
      kept.drop(directory)
      session.end()
      throw error
    }
    try kept.giveBack(session)
    return value
  }
}

extension VirtualDevice {
  /// Holds the device and finishes what a crash has left unfinished.
  ///
  /// - Parameters:
  ///   - access: Reading beside others, or writing alone.
  ///   - verb: What the holder is doing ("keyhaul restore"), told to whoever finds the device busy.
  ///   - wait: How long to wait where another process holds it.
  /// - Throws: `.deviceBusy`, `.deviceNotFound`, `.deviceDamaged`, `.unsupportedVersion`, `.deviceIO`.
  public func openSession(
    _ access: DeviceAccess, verb: String, wait: Duration = .zero
  ) throws(KeyhaulError) -> DeviceSession {
    try DeviceSession(self, access, verb: verb, wait: wait)
  }

  /// Holds the device for the length of the closure. What it changed is on the disk when this returns.
  public func withSession<Value>(
    _ access: DeviceAccess, verb: String, wait: Duration = .zero,
    _ body: (DeviceSession) throws(KeyhaulError) -> Value
  ) throws(KeyhaulError) -> Value {
    let session = try openSession(access, verb: verb, wait: wait)
    defer { session.end() }
    let value = try body(session)
    try session.finish()
    return value
  }
}
