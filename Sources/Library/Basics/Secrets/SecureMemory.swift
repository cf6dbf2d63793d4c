#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Memory with one owner that is overwritten when it is released; the storage of `SensitiveBytes` and `Secret`.
package struct SecureMemory: ~Copyable, Sendable {
  private nonisolated(unsafe) let storage: UnsafeMutableRawBufferPointer
  private let arena: SecretArena

  package var count: Int { storage.count }

  /// Allocates `count` zeroed bytes and lets `body` fill them. The bytes are also overwritten if `body` throws.
  ///
  /// - Parameters:
  ///   - count: The number of bytes.
  ///   - arena: The arena to allocate from: `.keys` for a secret that protects other data.
  ///   - body: Fills the bytes.
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

  /// The bytes; the pointer must not outlive the owner.
  package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(storage) }
}

/// Overwrites memory in a way that the optimizer does not remove.
package func wipe(_ buffer: UnsafeMutableRawBufferPointer) {
  guard let base = buffer.baseAddress, buffer.count > 0 else { return }
  #if canImport(Darwin)
    memset_s(base, buffer.count, 0, buffer.count)
  #else
    explicit_bzero(base, buffer.count)
  #endif
}
