import Basics
import Synchronization

/// Allows work to continue for a given number of checks, to simulate Ctrl-C at a chosen point.
public final class Patience: Sendable {
  private let left: Atomic<Int>

  /// - Parameter count: The number of checks that return `true`.
  public init(of count: Int = .max) { left = Atomic(count) }

  /// Returns whether the work should continue. Each call counts.
  public var holds: Bool { left.subtract(1, ordering: .relaxed).newValue >= 0 }

  /// Restarts the count.
  public func end(after count: Int) { left.store(count, ordering: .relaxed) }
}
