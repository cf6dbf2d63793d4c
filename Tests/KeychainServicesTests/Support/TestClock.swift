import Basics
import KeychainFormats
import VirtualDevice

/// A clock that only advances during waits and by `advance(by:)`.
final class TestClock: Sendable {
  private struct State {
    /// The time in seconds since 2001-01-01: an arbitrary time with a fraction of a second.
    var seconds = 785_412_345.25
    var waits: [Duration] = []
  }

  private let state = Locked(State())

  /// The previous waits.
  var waits: [Duration] { state.withLock { $0.waits } }

  func advance(by duration: Duration) {
    state.withLock { $0.seconds += Double(duration.components.seconds) }
  }

  var deviceClock: DeviceClock {
    DeviceClock(
      now: { KeychainDate(secondsSinceReferenceDate: self.state.withLock { $0.seconds }) },
      sleep: { duration in
        self.state.withLock { $0.waits.append(duration) }
        self.advance(by: duration)
      })
  }
}
