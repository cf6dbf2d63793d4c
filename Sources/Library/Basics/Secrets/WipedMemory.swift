#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Memory with one owner that is overwritten before it is given back: what `SensitiveBytes` and `Secret` keep theirs in.
package struct WipedMemory: ~Copyable, Sendable {
  private nonisolated(unsafe) let storage: UnsafeMutableRawBufferPointer
  private let arena: SecretArena

  package var count: Int { storage.count }

  /// Allocates `count` bytes, zeroed, and lets `body` fill them. They are overwritten too where `body` throws.
  ///
  /// - Parameter arena: Where they lie; what opens more than itself lies in `.keys`.
  package init<Failure: Error>(
    count: Int, in arena: SecretArena, filledBy body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    let buffer = arena.allocate(count)
    do {
      try body(buffer)
    } catch {
      arena.release(buffer)
      throw error
    }
    storage = buffer
    self.arena = arena
  }

  deinit { arena.release(storage) }

  /// For the length of a call; the pointer must not outlive the owner.
  package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(storage) }
}

/// Overwrites memory in a way that the optimiser keeps.
package func wipe(_ buffer: UnsafeMutableRawBufferPointer) {
  guard let base = buffer.baseAddress, buffer.count > 0 else { return }
  #if canImport(Darwin)
    memset_s(base, buffer.count, 0, buffer.count)
  #else
    explicit_bzero(base, buffer.count)
  #endif
}
