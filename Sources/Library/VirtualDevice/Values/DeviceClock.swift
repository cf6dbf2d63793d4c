public import Basics
import KeychainFormats

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A device's clock, which also waits.
public struct DeviceClock: Sendable {
  /// Returns the current date.
  public let now: @Sendable () -> KeychainDate
  /// Waits for a duration.
  package let sleep: @Sendable (Duration) -> Void
  /// Returns whether the caller still waits, for a busy device or a passcode key. A program that was asked to stop
  /// returns `false`.
  package let shouldContinue: @Sendable () -> Bool

  /// Creates a clock from closures. The clock of a test can skip the wait.
  ///
  /// - Parameters:
  ///   - now: Returns the current date. `DeviceClock.system.now` returns the date of the system's clock.
  ///   - sleep: Waits for a duration.
  ///   - shouldContinue: Returns whether the caller still waits, for a busy device or a passcode key.
  public init(
    now: @escaping @Sendable () -> KeychainDate, sleep: @escaping @Sendable (Duration) -> Void,
    shouldContinue: @escaping @Sendable () -> Bool = { true }
  ) {
    self.now = now
    self.sleep = sleep
    self.shouldContinue = shouldContinue
  }

  /// The system's clock, with microseconds.
  public static let system = DeviceClock(
    now: {
      var time = timespec()
      clock_gettime(CLOCK_REALTIME, &time)
      return KeychainDate(microsecondsSince1970: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000)
    },
    sleep: LockTimeout.sleepOnThread)

  /// Returns a clock that always has the same date and never waits, for fixtures and tests.
  package static func fixed(at date: KeychainDate) -> DeviceClock {
    DeviceClock(now: { date }, sleep: { _ in })
  }
}
