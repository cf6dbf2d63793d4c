import Foundation

/// One piece of work on a thread of its own, beside what its owner does. It ends with its owner, done or not.
package final class SideWork: Sendable {
  /// Whether the owner still wants the work. Waits up to the given number of seconds for a refusal; with 0, returns at
  /// once.
  package typealias Demand = @Sendable (_ seconds: Double) -> Bool

  private let state = State()

  /// Begins the work.
  ///
  /// - Parameters:
  ///   - startThread: Starts the thread.
  ///   - work: The work. It must call `isWanted` several times a second, and end soon after it returns `false`.
  /// - Returns: `nil` if no thread can be started. The work has then not begun.
  package init?(
    startThread: WorkThread.Starter = WorkThread.start,
    _ work: @escaping @Sendable (_ isWanted: @escaping Demand) -> Void
  ) {
    let isRunning = startThread { [state] in
      work { state.isWanted(after: $0) }
    } _: { [state] in
      state.end()
    }
    guard isRunning else {
      state.end()
      return nil
    }
  }

  deinit { state.stop() }

  /// What the thread and the owner share. Every stored value is read and written with the lock held.
  private final class State: @unchecked Sendable {
    private let changed = NSCondition()
    private var wanted = true
    private var ended = false

    func isWanted(after seconds: Double) -> Bool {
      changed.lock()
      defer { changed.unlock() }
      let end = Date(timeIntervalSinceNow: seconds)
      while wanted, seconds > 0, changed.wait(until: end) {}
      return wanted
    }

    func end() {
      changed.lock()
      ended = true
      changed.broadcast()
      changed.unlock()
    }

    /// Waits until the work has ended: what it holds is gone then.
    func stop() {
      changed.lock()
      defer { changed.unlock() }
      wanted = false
      changed.broadcast()
      while !ended { changed.wait() }
    }
  }
}
