package import Basics
import KeychainFormats

/// A notification of a device about the keys that a lock removes.
///
/// Source: Apple, `UIApplication.protectedDataWillBecomeUnavailableNotification` and its counterpart.
package enum ProtectedDataEvent: Sendable, Hashable {
  /// The device was locked. The keys are removed at this date.
  case willBecomeUnavailable(at: KeychainDate)
  /// The keys were removed.
  case didBecomeUnavailable
  /// The keys are in memory again.
  case didBecomeAvailable
}

/// Reports a device's locks and unlocks to observers in this process.
///
/// Observers are called in the order in which they were added, on the thread that locks or unlocks the device, before
/// that call returns.
package final class ProtectedDataMonitor: Sendable {
  /// A token for removing an observer.
  package struct Observation: Sendable, Hashable {
    fileprivate let id: Int
  }

  private struct State {
    var observers: [(id: Int, body: @Sendable (ProtectedDataEvent) -> Void)] = []
    var lastID = 0
  }

  private let state = Locked(State())

  /// Creates a monitor without observers.
  package init() {}

  /// Adds an observer for all following events.
  ///
  /// - Parameter body: The observer. It must not open a session on the device, but can read items through the session
  ///   that is being locked.
  @discardableResult
  package func observe(_ body: @escaping @Sendable (ProtectedDataEvent) -> Void) -> Observation {
    state.withLock { state in
      state.lastID += 1
      state.observers.append((state.lastID, body))
      return Observation(id: state.lastID)
    }
  }

  /// Removes an observer. If it is being called, that call completes.
  package func remove(_ observation: Observation) {
    state.withLock { $0.observers.removeAll { $0.id == observation.id } }
  }

  /// Calls the current observers. An observer can add and remove observers, because the list is not locked during the
  /// calls.
  func notify(_ event: ProtectedDataEvent) {
    for observer in state.withLock({ $0.observers }) { observer.body(event) }
  }
}
