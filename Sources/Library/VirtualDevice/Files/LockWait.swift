/// A wait for somebody else's lock, up to a limit.
///
/// What was slept counts, whatever the clock makes of it, and where sleeping takes longer than it should, as on a machine
/// that is busy, the time that has really passed.
struct LockWait {
  private let limit: Duration
  private let clock: DeviceClock
  private let start = ContinuousClock.now
  private var slept = Duration.zero

  init(atMost limit: Duration, _ clock: DeviceClock) {
    self.limit = limit
    self.clock = clock
  }

  var waited: Duration { max(slept, start.duration(to: .now)) }

  /// Sleeps for this long, or for what is left.
  ///
  /// - Returns: `false` where nothing is left, or nobody wants to wait any more.
  mutating func pause(_ duration: Duration) -> Bool {
    let rest = limit - waited
    guard rest > .zero, clock.shouldContinue() else { return false }
    let pause = min(duration, rest)
    clock.sleep(pause)
    slept += pause
    return true
  }
}
