import CKeyhaul
package import SystemPackage

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A connection of a stream socket, closed with its last reference.
///
/// A single thread reads; any thread may write or shut down.
package final class StreamSocket: Sendable {
  private let descriptor: OwnedFileDescriptor

  init(_ descriptor: consuming OwnedFileDescriptor) { self.descriptor = descriptor }

  /// Connects to a port of 127.0.0.1.
  package convenience init(loopbackPort port: UInt16) throws(Errno) {
    self.init(OwnedFileDescriptor(FileDescriptor(rawValue: try checked(keyhaul_connect_loopback(port)))))
  }

  /// Connects to a socket at a path.
  package convenience init(path: String) throws(Errno) {
    self.init(OwnedFileDescriptor(FileDescriptor(rawValue: try checked(keyhaul_connect_path(path)))))
  }

  /// Reads the available bytes, or waits for the first byte.
  ///
  /// - Parameters:
  ///   - count: The maximum number of bytes to read, above 0.
  ///   - limit: The maximum wait; `nil` to wait without a limit.
  /// - Returns: At least one byte; empty if the peer has closed the connection.
  /// - Throws: `.timedOut` after the wait; `.connectionReset` and other errors of the system.
  package func read(upTo count: Int, within limit: Duration?) throws(Errno) -> [UInt8] {
    guard try waitUntilReadable(descriptor.raw, within: limit) else { throw .timedOut }
    while true {
      var failure: Errno?
      let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
        let received = recv(descriptor.raw.rawValue, buffer.baseAddress, count, 0)
        if received < 0 { failure = Errno(rawValue: errno) } else { initialized = received }
      }
      guard let failure else { return bytes }
      if failure != .interrupted { throw failure }
    }
  }

  /// Writes every byte.
  ///
  /// - Throws: `.timedOut` if the peer does not read for a minute; `.brokenPipe` and other errors of the system.
  package func write(_ bytes: [UInt8]) throws(Errno) {
    var sentCount = 0
    while sentCount < bytes.count {
      let count = bytes.withUnsafeBytes { buffer in
        buffer.baseAddress.map { keyhaul_send(descriptor.raw.rawValue, $0 + sentCount, buffer.count - sentCount) } ?? 0
      }
      guard count < 0 else {
        sentCount += count
        continue
      }
      let reason = Errno(rawValue: errno)
      if reason == .interrupted { continue }
      throw reason == .wouldBlock || reason == .resourceTemporarilyUnavailable ? .timedOut : reason
    }
  }

  /// Ends both directions, so that a thread that waits for bytes gets the end of the stream.
  package func shutDown() { keyhaul_shut_down(descriptor.raw.rawValue) }
}

/// A socket that accepts connections only from this machine: at a loopback address, or at a path that only its owner
/// can access.
package final class ListeningSocket: Sendable {
  private let descriptor: OwnedFileDescriptor
  /// The port of a loopback address; `nil` if the socket is at a path.
  package let port: UInt16?
  /// The absolute path; `nil` if the address is a loopback address.
  package let path: String?

  /// The maximum time that a write waits for the peer to read.
  private static let writeTimeoutSeconds: Int32 = 60

  /// Listens on 127.0.0.1 or ::1.
  ///
  /// - Parameters:
  ///   - port: The port, or 0 for a free one.
  ///   - usesIPv6: Whether to listen on ::1.
  package init(loopbackPort port: UInt16, usesIPv6: Bool = false) throws(Errno) {
    var chosenPort = port
    descriptor = OwnedFileDescriptor(
      FileDescriptor(rawValue: try checked(keyhaul_listen_loopback(usesIPv6, &chosenPort))))
    self.port = chosenPort
    path = nil
  }

  /// Listens at a path that only this user can access.
  ///
  /// - Throws: `.addressInUse` if anything is at the path.
  package init(path: String) throws(Errno) {
    let absolutePath = path.hasPrefix("/") ? path : try SystemCalls.workingDirectoryPath() + "/" + path
    descriptor = OwnedFileDescriptor(FileDescriptor(rawValue: try checked(keyhaul_listen_path(path))))
    port = nil
    self.path = absolutePath
  }

  /// Waits for a connection.
  ///
  /// - Returns: `nil` if none came within the limit.
  package func accept(within limit: Duration) throws(Errno) -> StreamSocket? {
    guard try waitUntilReadable(descriptor.raw, within: limit) else { return nil }
    do throws(Errno) {
      let accepted = try checked(keyhaul_accept(descriptor.raw.rawValue, Self.writeTimeoutSeconds))
      return StreamSocket(OwnedFileDescriptor(FileDescriptor(rawValue: accepted)))
    } catch {
      // A peer may disconnect before it is accepted. The listener is still usable.
      if error == .connectionAbort || error == .interrupted || error == .wouldBlock { return nil }
      throw error
    }
  }
}

private func checked(_ result: CInt) throws(Errno) -> CInt {
  guard result >= 0 else { throw Errno(rawValue: errno) }
  return result
}

/// Waits until a socket has bytes or a connection, or is at its end.
///
/// - Returns: `false` if the limit was reached first.
private func waitUntilReadable(_ socket: FileDescriptor, within limit: Duration?) throws(Errno) -> Bool {
  let deadline = limit.map { ContinuousClock.now.advanced(by: $0) }
  while true {
    let remaining = deadline.map { max(.zero, ContinuousClock.now.duration(to: $0)) }
    let milliseconds = remaining.map { CInt(clamping: Int64(($0 / .milliseconds(1)).rounded(.up))) } ?? -1
    let status = keyhaul_wait_readable(socket.rawValue, milliseconds)
    if status > 0 { return true }
    if status == 0 { return false }
    let reason = Errno(rawValue: errno)
    guard reason == .interrupted else { throw reason }
  }
}
