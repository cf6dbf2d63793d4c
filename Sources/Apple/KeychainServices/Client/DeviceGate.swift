import Basics
import Foundation
import VirtualDevice

/// Lets the threads of this process use a device one after another.
///
/// The device's own lock keeps other processes out, but whoever waits for it only looks again from time to time.
final class DeviceGate: Sendable {
  private struct Known {
    weak var gate: DeviceGate?
  }

  /// The system's lock and no `Mutex`: where threads meet, that one waits inside the standard library, where the thread
  /// sanitizer does not see who follows whom.
  private static let knownLock = NSLock()
  /// The gates by their devices' directories. Behind `knownLock`.
  private nonisolated(unsafe) static var known: [String: Known] = [:]
  /// Whoever holds the device and asks for it again is to be told that it is busy, not to wait for itself.
  private let lock = NSRecursiveLock()

  /// The one gate of the device's directory.
  static func of(_ device: VirtualDevice) -> DeviceGate {
    knownLock.withLock {
      if let gate = known[device.directory]?.gate { return gate }
      let gate = DeviceGate()
      known = known.filter { $0.value.gate != nil }
      known[device.directory] = Known(gate: gate)
      return gate
    }
  }

  /// The session of a device that was locked and has its keys for some seconds more. Only for who is inside.
  private nonisolated(unsafe) var locking: DeviceSession?

  func enter() { lock.lock() }
  func leave() { lock.unlock() }

  /// Whether a locked device has its keys still. Asking finishes nothing: whoever uses the device next does, and is told
  /// where it fails. Only for who is inside.
  var isLocking: Bool { locking?.isLocking == true }

  /// The session to use while the device is locking; `nil` if it isn't. Only for who is inside.
  ///
  /// - Throws: Where a session whose keys are gone could not be finished.
  var lockingSession: DeviceSession? {
    get throws(KeyhaulError) {
      try settle()
      return locking
    }
  }

  /// Locks the device through a session that is kept until its keys are gone. Only for who is inside.
  func lock(through session: DeviceSession) throws(KeyhaulError) {
    // Apps that hear of the lock may still read, and do so through this session.
    locking = session
    do throws(KeyhaulError) {
      try session.requestLock()
    } catch {
      try? settle()
      throw error
    }
    try settle()
  }

  /// Finishes a session whose keys are gone, or were never going.
  private func settle() throws(KeyhaulError) {
    guard let session = locking, !session.isLocking else { return }
    locking = nil
    try session.finish()
  }

  /// Waits for the keys to go. Only for who is inside.
  func finishLock() throws(KeyhaulError) {
    locking?.finishLock()
    try settle()
  }
}
