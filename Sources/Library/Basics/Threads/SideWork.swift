import Foundation

/// One piece of work on a thread of its own, beside what its owner does. It ends with its owner, done or not.
package final class SideWork: Sendable {
  private let state = State()

  /// Begins the work.
  ///
  /// - Parameter work: It has to ask `isWanted` several times a second, and to end soon where that answers `false`.
  package init(_ work: @escaping @Sendable (_ isWanted: @escaping @Sendable () -> Bool) -> Void) {
    WorkThread.start { [state] in
      work { state.isWanted }
    } ended: { [state] in
      state.end()
    }
  }

  deinit { state.stop() }

  /// What the thread and the owner share. Every stored value is read and written with the lock held.
  private final class State: @unchecked Sendable {
    private let changed = NSCondition()
    private var wanted = true
    private var ended = false

    var isWanted: Bool {
      changed.lock()
      defer { changed.unlock() }
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
      while !ended { changed.wait() }
    }
  }
}
