import Foundation

/// A thread for one piece of work, which is stopped when this object is released.
package final class BackgroundThread: Sendable {
  /// Returns whether the work should continue. Waits up to the given number of seconds for a stop; with 0, returns at
  /// once.
  package typealias ContinuationCheck = @Sendable (_ seconds: Double) -> Bool

  private let state = State()

  /// Starts the work.
  ///
  /// - Parameters:
  ///   - startThread: Starts the thread.
  ///   - work: The work. It must call `shouldContinue` several times a second, and end soon after it returns `false`.
  /// - Returns: `nil` if no thread can be started. The work has then not begun.
  package init?(
    startThread: SecureThread.Starter = SecureThread.start,
    _ work: @escaping @Sendable (_ shouldContinue: @escaping ContinuationCheck) -> Void
  ) {
    let isRunning = startThread { [state] in
      work { state.shouldContinue(after: $0) }
    } _: { [state] in
      state.end()
    }
    guard isRunning else {
      state.end()
      return nil
    }
  }

  deinit { state.stop() }

  /// The state that the thread and its owner share. All stored properties are accessed only with the lock held.
  private final class State: @unchecked Sendable {
    private let condition = NSCondition()
    private var isWanted = true
    private var hasEnded = false

    func shouldContinue(after seconds: Double) -> Bool {
      condition.lock()
      defer { condition.unlock() }
      let deadline = Date(timeIntervalSinceNow: seconds)
      while isWanted, seconds > 0, condition.wait(until: deadline) {}
      return isWanted
    }

    func end() {
      condition.lock()
      hasEnded = true
      condition.broadcast()
      condition.unlock()
    }

    /// Stops the work and waits until it has ended and released everything.
    func stop() {
      condition.lock()
      defer { condition.unlock() }
      isWanted = false
      condition.broadcast()
      while !hasEnded { condition.wait() }
    }
  }
}
