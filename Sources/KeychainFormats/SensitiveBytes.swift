#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Bytes of an item that must not be printed and do not outlive their last holder: a secret, or a whole decrypted item.
///
/// Shared by reference, so that an item can be handed around without copying its secret; overwritten when the last
/// reference goes. Keys and passwords use the non-copyable `Secret` of DataProtection instead.
public final class SensitiveBytes: Sendable, CustomStringConvertible, CustomReflectable {
  private nonisolated(unsafe) let storage: UnsafeMutableRawBufferPointer

  public var count: Int { storage.count }
  public var isEmpty: Bool { storage.isEmpty }

  /// Allocates `count` bytes, zeroed, and lets `body` fill them. The bytes are wiped too where `body` throws.
  public init<Failure: Error>(
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

  public convenience init(copying bytes: UnsafeRawBufferPointer) {
    self.init(count: bytes.count) { (target: UnsafeMutableRawBufferPointer) in
      target.copyMemory(from: bytes)
    }
  }

  public convenience init(copying bytes: [UInt8]) {
    self.init(count: bytes.count) { (target: UnsafeMutableRawBufferPointer) in
      target.copyBytes(from: bytes)
    }
  }

  deinit {
    wipe(storage)
    storage.deallocate()
  }

  /// Lends the bytes for the length of the closure; the pointer must not leave it.
  public func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeRawBufferPointer(storage))
  }

  /// Compares without revealing in its duration where the first difference is.
  public func constantTimeEquals(_ other: SensitiveBytes) -> Bool {
    guard count == other.count else { return false }
    var difference: UInt8 = 0
    for index in 0..<count { difference |= storage[index] ^ other.storage[index] }
    return difference == 0
  }

  public var description: String { "<\(count) sensitive bytes>" }
  public var customMirror: Mirror { Mirror(self, children: ["count": count]) }
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
