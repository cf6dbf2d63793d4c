import Basics
import Synchronization

/// Allows work to continue for a given number of checks, to simulate Ctrl-C at a chosen point.
package final class Patience: Sendable {
  private let left: Atomic<Int>

  /// - Parameter count: The number of checks that return `true`.
  package init(of count: Int = .max) { left = Atomic(count) }

  /// Returns whether the work should continue. Each call counts.
  package var holds: Bool { left.subtract(1, ordering: .relaxed).newValue >= 0 }

  /// Restarts the count.
  package func end(after count: Int) { left.store(count, ordering: .relaxed) }
}
