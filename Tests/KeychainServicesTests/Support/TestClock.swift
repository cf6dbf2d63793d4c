import Basics
import KeychainFormats
import VirtualDevice

/// A clock that only advances during waits and by `advance(by:)`.
final class TestClock: Sendable {
  private struct State {
    var seconds = 785_412_345.25
    var slept: [Duration] = []
    var whileSleeping: (@Sendable () -> Void)?
  }

  private let state = Locked(State())

  /// The previous waits.
  var slept: [Duration] { state.withLock { $0.slept } }

  /// Sets an action that runs at the end of the next wait.
  func duringNextSleep(_ action: @escaping @Sendable () -> Void) { state.withLock { $0.whileSleeping = action } }

  func advance(by duration: Duration) {
    state.withLock { $0.seconds += Double(duration.components.seconds) }
  }

  var deviceClock: DeviceClock {
    DeviceClock(
      now: { KeychainDate(secondsSinceReferenceDate: self.state.withLock { $0.seconds }) },
      sleep: { duration in
        let action = self.state.withLock { state in
          state.slept.append(duration)
          defer { state.whileSleeping = nil }
          return state.whileSleeping
        }
        action?()
        self.advance(by: duration)
      })
  }
}
