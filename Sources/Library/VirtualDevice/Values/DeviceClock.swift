public import Basics
import KeychainFormats

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Where a device takes the time from, and how it waits.
public struct DeviceClock: Sendable {
  /// The wall clock's time.
  public let now: @Sendable () -> KeychainDate
  /// Waits for this long.
  package let sleep: @Sendable (Duration) -> Void
  /// Whether whoever waits, for a device in use or for the key of a passcode, wants to go on with it. A program that was asked to stop says no.
  package let shouldContinue: @Sendable () -> Bool

  /// Creates a clock of closures; a test's own jumps where the system's would wait.
  public init(
    now: @escaping @Sendable () -> KeychainDate, sleep: @escaping @Sendable (Duration) -> Void,
    shouldContinue: @escaping @Sendable () -> Bool = { true }
  ) {
    self.now = now
    self.sleep = sleep
    self.shouldContinue = shouldContinue
  }

  /// The system's clock, to the microsecond.
  public static let system = DeviceClock(
    now: {
      var time = timespec()
      clock_gettime(CLOCK_REALTIME, &time)
      return KeychainDate(microsecondsSince1970: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000)
    },
    sleep: LockWait.sleepOnThread)

  /// A clock that stands still; waiting takes no time. For fixtures and tests.
  package static func fixed(at date: KeychainDate) -> DeviceClock {
    DeviceClock(now: { date }, sleep: { _ in })
  }
}
