import KeyhaulKit
import SystemPackage

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A buffered output descriptor. The buffer may contain secrets, so it is overwritten after each write.
final class BufferedOutput {
  /// The size at which the buffer is written, in bytes.
  static let bufferByteCount = 32_768

  let descriptor: Int32
  private var buffered = SensitiveBuffer()
  /// The error of the first failed write. Later writes fail too, because their output would follow a gap.
  private var failure: Errno?

  init(descriptor: Int32) { self.descriptor = descriptor }

  /// Adds bytes to the buffer, which is written when it is full.
  func write(_ bytes: some Collection<UInt8>) throws(Errno) {
    // `nil` if the bytes are not contiguous in memory.
    let wasAppended: Void? = bytes.withContiguousStorageIfAvailable { buffered.append(UnsafeRawBufferPointer($0)) }
    if wasAppended == nil { for byte in bytes { buffered.append(byte) } }
    if buffered.count >= Self.bufferByteCount { try flush() }
  }

  /// Writes the buffer. Continues after interrupted and partial writes.
  ///
  /// - Throws: The error of the first failed write. Later calls throw the same error again, because a caller may have
  ///   ignored it.
  func flush() throws(Errno) {
    if let failure { throw failure }
    guard buffered.count > 0 else { return }
    defer { buffered.removeAll() }
    do throws(Errno) {
      try buffered.withBytes { (bytes) throws(Errno) in try Self.writeAll(bytes, to: descriptor) }
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
      let writtenCount = posixWrite(descriptor, UnsafeRawBufferPointer(rebasing: bytes[offset...]))
      if writtenCount >= 0 {
        offset += writtenCount
        continue
      }
      let error = Errno.last
      let isWaiting = error == .resourceTemporarilyUnavailable || error == .wouldBlock
      guard isWaiting || error == .interrupted else { throw error }
      if Interruption.pending != nil { throw .interrupted }
      guard isWaiting else { continue }
      var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      _ = poll(&ready, 1, SecureInputBuffer.pollTimeout)
    }
  }

  /// Returns whether a descriptor accepts a few bytes without waiting.
  static func acceptsBytesNow(_ descriptor: Int32) -> Bool {
    var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    return poll(&ready, 1, 0) == 1
  }
}

/// Reads from a descriptor.
enum DescriptorInput {
  /// Waits until a descriptor has bytes or reaches its end.
  ///
  /// - Throws: An error for the interruption if the program was asked to stop.
  static func waitForInput(_ descriptor: Int32) throws(CommandError) {
    var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    repeat { try Interruption.check() } while poll(&ready, 1, SecureInputBuffer.pollTimeout) == 0
    try Interruption.check()
  }

  /// Reads the available bytes with one call. Returns 0 at the end.
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
  /// The error number of the call that has just failed on this thread.
  static var last: Errno { Errno(rawValue: errno) }

  var isClosedPipe: Bool { self == .brokenPipe }
}

extension CommandExitStatus {
  /// Ended because the program that reads the output closed the pipe.
  static let closedPipe = CommandExitStatus.signal(SIGPIPE)
}

/// The three standard descriptors, which a parent process may have closed (`>&-`).
enum StandardStreams {
  /// Opens `/dev/null` in the place of each closed descriptor. Otherwise, a file that is opened later would get the
  /// descriptor's number and receive the output.
  ///
  /// Reading the placeholder returns no bytes. Writing fails, as on a closed descriptor.
  static func reserveClosedDescriptors() {
    for descriptor in Int32(0)...2 where fcntl(descriptor, F_GETFD) == -1 && errno == EBADF {
      // `open` returns the lowest free number, and all lower ones are in use.
      _ = open("/dev/null", O_RDONLY)
    }
  }
}
