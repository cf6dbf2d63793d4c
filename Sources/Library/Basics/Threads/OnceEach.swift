import Foundation

/// Values that are made once for each key, whoever asks for one first; the others wait for it.
///
/// What could not be made is not remembered: the next that asks tries again. No more than `capacity` values are kept, and
/// the oldest goes first.
package final class OnceEach<Key: Hashable & Sendable, Value: Sendable>: @unchecked Sendable {
  // Every stored value is read and written with the lock held.
  private let changed = NSCondition()
  private let capacity: Int
  private var values: [Key: Value] = [:]
  private var order: [Key] = []
  private var underway: Set<Key> = []
  private var madeCount = 0

  /// - Parameter capacity: How many values are kept, at least 1.
  package init(capacity: Int) { self.capacity = max(1, capacity) }

  /// How many values were made so far.
  package var count: Int {
    changed.lock()
    defer { changed.unlock() }
    return madeCount
  }

  /// The value of a key, made where it is not there; no lock is held meanwhile.
  package func value<Failure: Error>(for key: Key, make: () throws(Failure) -> Value) throws(Failure) -> Value {
    if let value = claim(key) { return value }
    do throws(Failure) {
      let value = try make()
      settle(key, value)
      return value
    } catch {
      settle(key, nil)
      throw error
    }
  }

  /// Returns the stored value for a key; `nil` if the caller has to make it.
  private func claim(_ key: Key) -> Value? {
    changed.lock()
    defer { changed.unlock() }
    while underway.contains(key) { changed.wait() }
    if let value = values[key] { return value }
    underway.insert(key)
    return nil
  }

  private func settle(_ key: Key, _ value: Value?) {
    changed.lock()
    defer { changed.unlock() }
    underway.remove(key)
    changed.broadcast()
    guard let value else { return }
    madeCount += 1
    values[key] = value
    order.append(key)
    if order.count > capacity { values[order.removeFirst()] = nil }
  }
}
