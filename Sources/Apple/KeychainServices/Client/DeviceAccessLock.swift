import Basics
import Foundation
import VirtualDevice

/// Serializes the access of this process's threads to a device.
///
/// The device also has a file lock, which excludes other processes. It is not enough, because waiting for a file lock
/// means polling.
final class DeviceAccessLock: Sendable {
  private struct WeakReference {
    weak var lock: DeviceAccessLock?
  }

  /// An `NSLock`, because the thread sanitizer does not see how `Mutex` orders threads: it waits inside the standard
  /// library.
  private static let locksMutex = NSLock()
  /// The locks by device folder. Protected by `locksMutex`.
  private nonisolated(unsafe) static var locks: [String: WeakReference] = [:]
  /// Recursive, so that a thread that already uses the device does not wait for itself. Its second use fails later, with
  /// an error.
  private let mutex = NSRecursiveLock()

  /// Returns the access lock for a device's folder.
  static func forDevice(_ device: VirtualDevice) -> DeviceAccessLock {
    locksMutex.withLock {
      if let lock = locks[device.directory]?.lock { return lock }
      let lock = DeviceAccessLock()
      locks = locks.filter { $0.value.lock != nil }
      locks[device.directory] = WeakReference(lock: lock)
      return lock
    }
  }

  // The members below, except `lock` and `unlock`, require that the caller holds this access lock.

  /// The session of a pending device lock: the device lock was requested, but the keys are still in memory.
  private nonisolated(unsafe) var sessionBeingLocked: DeviceSession?

  func lock() { mutex.lock() }
  func unlock() { mutex.unlock() }

  /// Whether a device lock is pending: it was requested, but the keys are still in memory.
  ///
  /// This does not close the session. The next use of the device closes it, and reports errors.
  var isLocking: Bool { sessionBeingLocked?.isLocking == true }

  /// The session of a pending device lock, or `nil` if there is none. Closes the session first if its keys were removed.
  ///
  /// - Throws: An error if a session whose keys were removed cannot be closed.
  var lockingSession: DeviceSession? {
    get throws(KeyhaulError) {
      try closeIfLocked()
      return sessionBeingLocked
    }
  }

  /// Locks the device through a session that stays open until its keys are removed.
  func lockDevice(through session: DeviceSession) throws(KeyhaulError) {
    // Apps that are notified of the locking may still read items, through this session.
    sessionBeingLocked = session
    do throws(KeyhaulError) {
      try session.requestLock()
    } catch {
      try? closeIfLocked()
      throw error
    }
    try closeIfLocked()
  }

  /// Closes the session, except if the device lock is still pending.
  private func closeIfLocked() throws(KeyhaulError) {
    guard let session = sessionBeingLocked, !session.isLocking else { return }
    sessionBeingLocked = nil
    try session.close()
  }

  /// Waits until the keys of a pending device lock are removed.
  func waitForLock() throws(KeyhaulError) {
    sessionBeingLocked?.waitForLock()
    try closeIfLocked()
  }
}
