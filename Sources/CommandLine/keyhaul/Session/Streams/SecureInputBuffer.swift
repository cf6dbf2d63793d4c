import KeyhaulKit
import SystemPackage

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A buffer for a secret that is being read, in memory that is overwritten when it is released.
final class SecureInputBuffer {
  enum ReadStep: Equatable {
    case more
    case end
    /// No data arrived for a while, or a signal did. The caller decides whether to continue.
    case noDataYet
    /// The limit is reached, and there are more bytes.
    case full
  }

  /// The maximum number of bytes.
  let limit: Int
  private(set) var count = 0
  private var storage: UnsafeMutableRawBufferPointer

  init(limit: Int) {
    self.limit = limit
    storage = SecretArena.keys.allocate(256)
  }

  deinit { SecretArena.keys.release(storage) }

  /// The time that a read waits for data, in milliseconds.
  static let pollTimeout: Int32 = 200

  /// Reads the available bytes, waiting a short time for the first one.
  func readOnce(from descriptor: Int32) throws(Errno) -> ReadStep {
    var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    // A descriptor that does not support waiting returns immediately, and the read reports the reason.
    let waited = poll(&ready, 1, Self.pollTimeout)
    // Reading after a signal could wait for data that the caller no longer wants.
    if waited == 0 || (waited < 0 && errno == EINTR) { return .noDataYet }
    if count == storage.count { grow() }
    let room = UnsafeMutableRawBufferPointer(rebasing: storage[count...])
    let received: Int
    do throws(Errno) {
      received = try DescriptorInput.readOnce(descriptor, into: room)
    } catch {
      if error == .interrupted { return .noDataYet }
      throw error
    }
    count += received
    if received == 0 { return .end }
    return count > limit ? .full : .more
  }

  func withBytes<Result: ~Copyable>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
    body(UnsafeRawBufferPointer(rebasing: storage[..<count]))
  }

  /// Returns a copy of the bytes. The original is overwritten with the buffer.
  func secret() -> Secret { withBytes { Secret(copying: $0) } }

  func sensitiveBytes() -> SensitiveBytes { withBytes { SensitiveBytes(copying: $0) } }

  var endsInNewline: Bool { count > 0 && storage[count - 1] == UInt8(ascii: "\n") }

  /// Removes one LF or CR LF from the end.
  func dropTrailingNewline() {
    guard endsInNewline else { return }
    count -= 1
    if count > 0, storage[count - 1] == UInt8(ascii: "\r") { count -= 1 }
  }

  /// Removes a byte order mark from the start.
  ///
  /// - Returns: Whether a mark was removed. A mark without further bytes stays.
  func dropByteOrderMark() -> Bool {
    let markCount = withBytes { UTF8Scalars.byteOrderMarkCount(of: $0) }
    guard markCount > 0, count > markCount else { return false }
    // The ranges overlap, which `copyMemory` allows.
    storage.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[markCount..<count]))
    count -= markCount
    return true
  }

  private func grow() {
    let larger = SecretArena.keys.allocate(storage.count * 2)
    larger.copyMemory(from: UnsafeRawBufferPointer(storage))
    SecretArena.keys.release(storage)
    storage = larger
  }
}
