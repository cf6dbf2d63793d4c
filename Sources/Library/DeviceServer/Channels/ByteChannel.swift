package import Basics
import SystemPackage

/// A failure that ends a conversation with a client. It contains nothing that the client sent.
package struct WireError: Error, Sendable, Hashable {
  /// The kind of the failure.
  package enum Code: Sendable, Hashable {
    /// The client or the system has closed the connection.
    case closed
    /// The client sent nothing, or read nothing, for too long.
    case timedOut
    /// Bytes do not follow the protocol.
    case malformed
    /// A length is above its limit.
    case overLimit
    /// The client did not prove that it is paired.
    case untrusted
  }

  /// The kind of the failure.
  package let code: Code
  /// The specific reason, as a clause.
  package let reason: String

  package init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  package static let closed = WireError(.closed, "the client closed the connection")
  package static let timedOut = WireError(.timedOut, "the client was silent for too long")
}

/// A stream of bytes in both directions: a socket, TLS over a socket, or a test's script.
///
/// Only one thread may read. Any thread may write or close.
package protocol ByteChannel: AnyObject, Sendable {
  /// Reads the available bytes, or waits for the first bytes.
  ///
  /// - Parameters:
  ///   - count: The maximum number of bytes to read, above 0.
  ///   - limit: The maximum wait; `nil` to wait without a limit.
  /// - Returns: At least one byte; empty at the end of the stream.
  /// - Throws: `.timedOut`, `.closed` and `.malformed`.
  func read(upTo count: Int, within limit: Duration?) throws(WireError) -> [UInt8]

  /// Writes every byte.
  ///
  /// - Throws: `.timedOut` and `.closed`.
  func write(_ bytes: [UInt8]) throws(WireError)

  /// Ends the stream in both directions.
  func close()
}

extension ByteChannel {
  /// Reads exactly `count` bytes within the limit.
  ///
  /// - Returns: The bytes; `nil` if the stream ends before the first one.
  /// - Throws: `.closed` if the stream ends after the first byte; the errors of `read(upTo:within:)`.
  package func readIfOpen(_ count: Int, within limit: Duration?) throws(WireError) -> [UInt8]? {
    guard count > 0 else { return [] }
    let end = limit.map { ContinuousClock.now.advanced(by: $0) }
    var bytes = try read(upTo: count, within: limit)
    if bytes.isEmpty { return nil }
    while bytes.count < count {
      let remainingTime = end.map { max(.zero, ContinuousClock.now.duration(to: $0)) }
      let more = try read(upTo: count - bytes.count, within: remainingTime)
      if more.isEmpty { throw .closed }
      bytes += more
    }
    return bytes
  }

  /// Reads exactly `count` bytes within the limit.
  ///
  /// - Throws: `.closed` if the stream ends earlier; the errors of `read(upTo:within:)`.
  package func read(exactly count: Int, within limit: Duration?) throws(WireError) -> [UInt8] {
    guard let bytes = try readIfOpen(count, within: limit) else { throw .closed }
    return bytes
  }
}

/// The channel of a socket.
package final class SocketChannel: ByteChannel {
  private let socket: StreamSocket

  package init(_ socket: StreamSocket) { self.socket = socket }

  package func read(upTo count: Int, within limit: Duration?) throws(WireError) -> [UInt8] {
    do throws(Errno) {
      return try socket.read(upTo: count, within: limit)
    } catch {
      throw error == .timedOut ? .timedOut : .closed
    }
  }

  package func write(_ bytes: [UInt8]) throws(WireError) {
    do throws(Errno) {
      try socket.write(bytes)
    } catch {
      throw error == .timedOut ? .timedOut : .closed
    }
  }

  package func close() { socket.shutDown() }
}
