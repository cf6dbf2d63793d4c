import KeyhaulKit
import SystemPackage

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Bytes of a secret while they arrive, in memory that is overwritten wherever they leave it.
final class WipedBuffer {
  enum ReadStep: Equatable {
    case more
    case end
    /// Nothing has come for a while, or a signal has; the caller looks whether to go on.
    case noDataYet
    /// The limit is reached and something follows.
    case full
  }

  /// The most bytes that are accepted.
  let limit: Int
  private(set) var count = 0
  private var storage: UnsafeMutableRawBufferPointer

  init(limit: Int) {
    self.limit = limit
    storage = SecretArena.keys.allocate(256)
  }

  deinit { SecretArena.keys.release(storage) }

  /// How long a read waits before the caller can look whether to go on, in milliseconds.
  static let pollTimeout: Int32 = 200

  /// Reads what is there, waiting a little for the first byte of it.
  func readOnce(from descriptor: Int32) throws(Errno) -> ReadStep {
    var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    // A descriptor that cannot be waited for answers at once, and the read says why.
    let waited = poll(&ready, 1, Self.pollTimeout)
    // After a signal nothing may be read: the read would wait for what the caller no longer wants.
    if waited == 0 || (waited < 0 && errno == EINTR) { return .noDataYet }
    if count == storage.count { grow() }
    let room = UnsafeMutableRawBufferPointer(rebasing: storage[count...])
    let received: Int
    do throws(Errno) {
      received = try ByteStream.readOnce(descriptor, into: room)
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

  /// A second owner of the bytes; these are overwritten with the buffer.
  func secret() -> Secret { withBytes { Secret(copying: $0) } }

  func sensitiveBytes() -> SensitiveBytes { withBytes { SensitiveBytes(copying: $0) } }

  var endsInNewline: Bool { count > 0 && storage[count - 1] == UInt8(ascii: "\n") }

  /// Takes one LF or CRLF off the end, and nothing else.
  func dropTrailingNewline() {
    guard endsInNewline else { return }
    count -= 1
    if count > 0, storage[count - 1] == UInt8(ascii: "\r") { count -= 1 }
  }

  /// Takes a byte order mark off the start.
  ///
  /// - Returns: Whether there was one, with something behind it.
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
