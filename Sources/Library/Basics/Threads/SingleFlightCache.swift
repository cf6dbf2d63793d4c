import Foundation

/// A cache that computes each value once. If several threads request a value at the same time, one of them computes it
/// and the others wait.
///
/// Failed computations are not cached, so the next request tries again. The cache keeps at most `capacity` values and
/// removes the oldest first.
package final class SingleFlightCache<Key: Hashable & Sendable, Value: Sendable>: @unchecked Sendable {
  // All stored properties are accessed only with the lock held.
  private let condition = NSCondition()
  private let capacity: Int
  private var values: [Key: Value] = [:]
  /// The keys of `values`, the oldest first.
  private var order: [Key] = []
  private var keysInProgress: Set<Key> = []
  private var computedCount = 0

  /// Creates an empty cache.
  ///
  /// - Parameter capacity: The maximum number of values to keep, at least 1.
  package init(capacity: Int) { self.capacity = max(1, capacity) }

  /// The number of values that have been computed.
  package var count: Int {
    condition.lock()
    defer { condition.unlock() }
    return computedCount
  }

  /// Returns the value for a key, and computes it if necessary. No lock is held during the computation.
  package func value<Failure: Error>(for key: Key, make: () throws(Failure) -> Value) throws(Failure) -> Value {
    if let value = claim(key) { return value }
    do throws(Failure) {
      let value = try make()
      finish(key, value)
      return value
    } catch {
      finish(key, nil)
      throw error
    }
  }

  /// Returns the cached value for a key, or `nil` if the caller has to compute it.
  private func claim(_ key: Key) -> Value? {
    condition.lock()
    defer { condition.unlock() }
    while keysInProgress.contains(key) { condition.wait() }
    if let value = values[key] { return value }
    keysInProgress.insert(key)
    return nil
  }

  /// Stores the value of a computation, or `nil` if it failed, and wakes the threads that wait for it.
  private func finish(_ key: Key, _ value: Value?) {
    condition.lock()
    defer { condition.unlock() }
    keysInProgress.remove(key)
    condition.broadcast()
    guard let value else { return }
    computedCount += 1
    values[key] = value
    order.append(key)
    if order.count > capacity { values[order.removeFirst()] = nil }
  }
}
