import Basics
import Synchronization

/// Wants work to go on so many more times that it is asked, and then no longer: Ctrl-C at a place that a test chooses.
public final class Patience: Sendable {
  private let left: Atomic<Int>

  /// - Parameter count: How often the answer is yes.
  public init(of count: Int = .max) { left = Atomic(count) }

  /// Whether it goes on. Each question counts.
  public var holds: Bool { left.subtract(1, ordering: .relaxed).newValue >= 0 }

  /// Begins to count again.
  public func end(after count: Int) { left.store(count, ordering: .relaxed) }
}
