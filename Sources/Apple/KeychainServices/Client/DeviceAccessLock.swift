import Basics
import Foundation
import VirtualDevice

/// Serializes the access of this process's threads to a device.
///
/// The device also has a file lock, which excludes other processes. The file lock alone is not enough, because a thread
/// can only poll it.
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

  // The members below, except `acquire` and `release`, require that the caller holds this access lock.

  /// The session through which the device is being locked. It stays open until its keys are removed, and is closed at the
  /// next use of the device.
  private nonisolated(unsafe) var pendingSession: DeviceSession?

  func acquire() { mutex.lock() }
  func release() { mutex.unlock() }

  /// Whether a device lock is pending: it was requested, but the keys are still in memory.
  var isDeviceLockPending: Bool { pendingSession?.isLocking == true }

  /// Returns the session of a pending device lock. If its keys were removed, it is closed.
  ///
  /// - Returns: `nil` if no device lock is pending.
  /// - Throws: An error if a session whose keys were removed cannot be closed.
  func sessionOfPendingLock() throws(KeyhaulError) -> DeviceSession? {
    try closeUnlessPending()
    return pendingSession
  }

  /// Locks the device through a session that stays open until its keys are removed.
  func lockDevice(through session: DeviceSession) throws(KeyhaulError) {
    // Apps that are notified of the device lock may still read items, through this session.
    pendingSession = session
    do throws(KeyhaulError) {
      try session.requestLock()
    } catch {
      try? closeUnlessPending()
      throw error
    }
    try closeUnlessPending()
  }

  /// Waits until the keys of a pending device lock are removed, and closes the session.
  func waitForKeyRemoval() throws(KeyhaulError) {
    pendingSession?.waitForLock()
    try closeUnlessPending()
  }

  /// Closes the session, unless its keys are still in memory.
  private func closeUnlessPending() throws(KeyhaulError) {
    guard let session = pendingSession, !session.isLocking else { return }
    pendingSession = nil
    try session.close()
  }
}
