import Basics
import Synchronization

/// A number of checks for cancellation after which work must stop, to simulate Ctrl-C at a chosen point.
package final class CheckBudget: Sendable {
  private let remaining: Atomic<Int>

  /// Creates a budget.
  ///
  /// - Parameter count: The number of checks that return `true`.
  package init(count: Int = .max) { remaining = Atomic(count) }

  /// Uses one check, and returns whether the work should continue.
  package func useCheck() -> Bool { remaining.subtract(1, ordering: .relaxed).newValue >= 0 }

  /// Sets the number of remaining checks.
  package func reset(to count: Int) { remaining.store(count, ordering: .relaxed) }
}
