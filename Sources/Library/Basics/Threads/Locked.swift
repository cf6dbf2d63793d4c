import Foundation

/// A value that threads work with one after another.
///
/// Behind the system's lock and not the standard library's `Mutex`: where threads meet, that one waits inside the standard
/// library, where the thread sanitizer does not see who follows whom, and tells of races that are none.
package struct Locked<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
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

  /// Lends the value. Whoever asks again inside of `body` waits for ever.
  @inlinable package borrowing func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    lock.lock()
    defer { lock.unlock() }
    return try body(&value.pointee)
  }
}

/// Keeps Foundation out of what is compiled into other parts.
@usableFromInline
final class SystemLock: Sendable {
  private let system = NSLock()

  @usableFromInline init() {}
  @usableFromInline func lock() { system.lock() }
  @usableFromInline func unlock() { system.unlock() }
}
