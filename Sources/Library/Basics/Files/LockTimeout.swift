/// A wait for another process's lock, up to a limit.
///
/// The wait is the sum of the requested pauses or the measured time, whichever is longer. A test does not really sleep,
/// and a busy machine sleeps longer than requested.
package struct LockTimeout {
  private let limit: Duration
  private let sleep: (Duration) -> Void
  private let shouldContinue: () -> Bool
  private let start = ContinuousClock.now
  private var slept = Duration.zero

  /// - Parameters:
  ///   - limit: The maximum time to wait.
  ///   - sleep: Sleeps for a duration, or until a signal arrives.
  ///   - shouldContinue: Returns whether the user still wants to wait.
  package init(
    atMost limit: Duration, sleep: @escaping (Duration) -> Void = Self.sleepOnThread,
    shouldContinue: @escaping () -> Bool
  ) {
    self.limit = limit
    self.sleep = sleep
    self.shouldContinue = shouldContinue
  }

  package var waited: Duration { max(slept, start.duration(to: .now)) }

  /// Sleeps for a duration, or for the remaining time if that is shorter.
  ///
  /// - Returns: `false` if the limit is reached or the user no longer wants to wait.
  package mutating func pause(_ duration: Duration) -> Bool {
    let remaining = limit - waited
    guard remaining > .zero, shouldContinue() else { return false }
    let pause = min(duration, remaining)
    sleep(pause)
    slept += pause
    return true
  }

  package static func sleepOnThread(_ duration: Duration) { SystemCalls.sleep(duration) }
}
