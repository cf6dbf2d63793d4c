import KeyhaulKit
import SystemPackage

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Where bytes leave the program: a descriptor, written whole or not at all for what the caller can tell. What waits is
/// overwritten once it is written, for it may be a secret.
final class ByteStream {
  /// Bytes that wait are written once there are this many.
  static let bufferByteCount = 32_768

  let descriptor: Int32
  private var waiting = SensitiveBuffer()
  /// What the first write that failed failed with: what follows would have a hole before it.
  private var failure: Errno?

  init(descriptor: Int32) { self.descriptor = descriptor }

  /// Takes the bytes; they may wait until `flush`.
  func write(_ bytes: some Collection<UInt8>) throws(Errno) {
    let appended: Void? = bytes.withContiguousStorageIfAvailable { waiting.append(UnsafeRawBufferPointer($0)) }
    if appended == nil { for byte in bytes { waiting.append(byte) } }
    if waiting.count >= Self.bufferByteCount { try flush() }
  }

  /// Writes what waits. Interrupted and partial writes are carried on; what failed is not tried again, and fails from
  /// then on, so that no caller that had to go on hides it from the last one.
  func flush() throws(Errno) {
    if let failure { throw failure }
    guard waiting.count > 0 else { return }
    defer { waiting.removeAll() }
    do throws(Errno) {
      try waiting.withBytes { (bytes) throws(Errno) in try Self.writeAll(bytes, to: descriptor) }
    } catch {
      failure = error
      throw error
    }
  }

  static func writeAll(_ bytes: [UInt8], to descriptor: Int32) throws(Errno) {
    try bytes.withUnsafeBytes { bytes in
      Result { () throws(Errno) in try writeAll(bytes, to: descriptor) }
    }.get()
  }

  /// Writes borrowed bytes without copying them.
  ///
  /// - Throws: `.interrupted` if the write would wait for a reader and the program was asked to stop.
  static func writeAll(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) throws(Errno) {
    var offset = 0
    while offset < bytes.count {
      let written = posixWrite(descriptor, UnsafeRawBufferPointer(rebasing: bytes[offset...]))
      if written >= 0 {
        offset += written
        continue
      }
      let error = Errno.last
      let isWaiting = error == .resourceTemporarilyUnavailable || error == .wouldBlock
      guard isWaiting || error == .interrupted else { throw error }
      if Interruption.pending != nil { throw .interrupted }
      guard isWaiting else { continue }
      var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      _ = poll(&ready, 1, WipedBuffer.pollTimeout)
    }
  }

  /// Whether a descriptor accepts a few bytes without waiting.
  static func takesBytesNow(_ descriptor: Int32) -> Bool {
    var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    return poll(&ready, 1, 0) == 1
  }
}

extension ByteStream {
  /// Waits until a descriptor has bytes or reaches its end.
  ///
  /// - Throws: The interruption, if the program was asked to stop.
  static func waitForInput(_ descriptor: Int32) throws(CommandFailure) {
    var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    repeat { try Interruption.check() } while poll(&ready, 1, WipedBuffer.pollTimeout) == 0
    try Interruption.check()
  }

  /// Reads what is there, once: where a signal comes first the caller looks whether to go on, and 0 is the end.
  static func readOnce(
    _ descriptor: Int32, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    let count = posixRead(descriptor, buffer)
    guard count >= 0 else { throw .last }
    return count
  }
}

private func posixRead(_ descriptor: Int32, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
  read(descriptor, buffer.baseAddress, buffer.count)
}

private func posixWrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
  write(descriptor, bytes.baseAddress, bytes.count)
}

extension Errno {
  /// The reason of the call that has just failed on this thread.
  static var last: Errno { Errno(rawValue: errno) }

  /// The number of the signal that a closed pipe stands for.
  static let closedPipeSignal = SIGPIPE

  var isClosedPipe: Bool { self == .brokenPipe }
}

/// The three descriptors that a program is started with, where a parent has closed one (`>&-`).
enum StandardStreams {
  /// Puts something in the place of those that are closed, so that no file which is opened later gets the number and what
  /// is printed ends in it. Reading there finds nothing; writing fails, as it would on a closed stream.
  static func occupy() {
    for descriptor in Int32(0)...2 where fcntl(descriptor, F_GETFD) == -1 && errno == EBADF {
      // The lowest free number is taken, and those below are not free.
      _ = open("/dev/null", O_RDONLY)
    }
  }
}
