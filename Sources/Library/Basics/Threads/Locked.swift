import Foundation

/// A value that only one thread at a time can access.
///
/// It uses `NSLock` instead of the standard library's `Mutex`: the thread sanitizer does not see the mutex synchronize
/// threads, and reports data races that do not exist.
@usableFromInline package struct Locked<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
  @usableFromInline nonisolated(unsafe) let value: UnsafeMutablePointer<Value>
  @usableFromInline let lock = SystemLock()

  @inlinable package init(_ value: consuming sending Value) {
    self.value = .allocate(capacity: 1)
    self.value.initialize(to: value)
  }

  @inlinable deinit {
    value.deinitialize(count: 1)
    value.deallocate()
  }

  /// Calls a closure with the value. A nested call from the closure deadlocks.
  @inlinable package borrowing func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    lock.lock()
    defer { lock.unlock() }
    return try body(&value.pointee)
  }
}

/// Keeps Foundation out of code that is inlined into other modules.
@usableFromInline
final class SystemLock: Sendable {
  private let system = NSLock()

  @usableFromInline init() {}
  @usableFromInline func lock() { system.lock() }
  @usableFromInline func unlock() { system.unlock() }
}
