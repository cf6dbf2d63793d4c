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

  package var count: Int { storage.count }

  /// Allocates `count` bytes, zeroed, and lets `body` fill them. They are overwritten too where `body` throws.
  package init<Failure: Error>(
    count: Int, filledBy body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
    buffer.initializeMemory(as: UInt8.self, repeating: 0)
    do {
      try body(buffer)
    } catch {
      wipe(buffer)
      buffer.deallocate()
      throw error
    }
    storage = buffer
  }

  deinit {
    wipe(storage)
    storage.deallocate()
  }

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
