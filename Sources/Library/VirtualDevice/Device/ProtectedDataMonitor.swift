package import Basics
import KeychainFormats

/// What a device tells its apps about the keys that a lock drops.
///
/// Source: Apple, `UIApplication.protectedDataWillBecomeUnavailableNotification` and its counterpart.
package enum ProtectedDataEvent: Sendable, Hashable {
  /// The device was locked; the keys go at this moment.
  case willBecomeUnavailable(at: KeychainDate)
  /// The keys are gone.
  case didBecomeUnavailable
  /// The keys are in memory again.
  case didBecomeAvailable
}

/// Tells whoever asked about a device's lock, in this process.
///
/// Observers are called on the thread that locks or unlocks, before the call returns, in the order in which they came.
package final class ProtectedDataMonitor: Sendable {
  /// Names an observer, to take it away again.
  package struct Observation: Sendable, Hashable {
    fileprivate let number: Int
  }

  private struct State {
    var observers: [(number: Int, body: @Sendable (ProtectedDataEvent) -> Void)] = []
    var nextNumber = 0
  }

  private let state = Locked(State())

  /// Creates a monitor without observers.
  package init() {}

  /// Adds an observer, which hears of every event from now on.
  ///
  /// - Parameter body: Must not hold the device; it may read items through the session that is locking.
  @discardableResult
  package func observe(_ body: @escaping @Sendable (ProtectedDataEvent) -> Void) -> Observation {
    state.withLock { state in
      state.nextNumber += 1
      state.observers.append((state.nextNumber, body))
      return Observation(number: state.nextNumber)
    }
  }

  /// Takes an observer away; one that is being called meanwhile is called to its end.
  package func remove(_ observation: Observation) {
    state.withLock { $0.observers.removeAll { $0.number == observation.number } }
  }

  /// Calls the observers that are there now, without holding any lock of its own.
  func tell(_ event: ProtectedDataEvent) {
    for observer in state.withLock({ $0.observers }) { observer.body(event) }
  }
}
