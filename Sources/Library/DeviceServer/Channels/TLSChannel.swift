import Basics
package import KeychainCrypto

/// TLS over another channel, with this side as the server.
package final class TLSChannel: ByteChannel {
  private let base: any ByteChannel
  /// The lock is also held while encrypted bytes are written to the base channel, so that they are sent in the order in
  /// which they were encrypted.
  private let connection: Locked<TLSConnection>

  private static let chunkByteCount = 1 << 16

  /// Carries out the handshake.
  ///
  /// - Parameters:
  ///   - base: The channel that TLS runs on.
  ///   - identity: The certificate and key to present.
  ///   - certificates: The certificates, in DER. The client has to present one of them.
  ///   - limit: The maximum time that the handshake may take.
  /// - Throws: `.untrusted` if the client does not present one of the certificates; `.malformed` if it does not use
  ///   TLS.
  package init(
    over base: any ByteChannel, presenting identity: TLSIdentity, requiringOneOf certificates: [[UInt8]],
    within limit: Duration
  ) throws(WireError) {
    self.base = base
    let end = ContinuousClock.now.advanced(by: limit)
    do throws(TLSError) {
      connection = Locked(try TLSConnection(identity))
    } catch {
      throw WireError(error)
    }
    while true {
      let isComplete = try connection.withLock { (connection) throws(WireError) in
        defer { try? base.write(connection.takeOutput()) }
        do throws(TLSError) {
          guard try connection.continueHandshake() else { return false }
          try connection.requirePeer(among: certificates)
          return true
        } catch {
          throw WireError(error)
        }
      }
      if isComplete { return }
      let remainingTime = max(.zero, ContinuousClock.now.duration(to: end))
      let bytes = try base.read(upTo: Self.chunkByteCount, within: remainingTime)
      if bytes.isEmpty { throw .closed }
      connection.withLock { $0.receive(bytes) }
    }
  }

  package func read(upTo count: Int, within limit: Duration?) throws(WireError) -> [UInt8] {
    let end = limit.map { ContinuousClock.now.advanced(by: $0) }
    while true {
      let reading = try connection.withLock { (connection) throws(WireError) in
        do throws(TLSError) {
          let reading = try connection.read(upTo: min(count, Self.chunkByteCount))
          let output = connection.takeOutput()
          if !output.isEmpty { try? base.write(output) }
          return reading
        } catch {
          throw WireError(error)
        }
      }
      switch reading {
      case .bytes(let bytes): return bytes
      case .closed: return []
      case .needsInput:
        let remainingTime = end.map { max(.zero, ContinuousClock.now.duration(to: $0)) }
        let bytes = try base.read(upTo: Self.chunkByteCount, within: remainingTime)
        if bytes.isEmpty { return [] }
        connection.withLock { $0.receive(bytes) }
      }
    }
  }

  package func write(_ bytes: [UInt8]) throws(WireError) {
    try connection.withLock { (connection) throws(WireError) in
      do throws(TLSError) {
        try connection.write(bytes)
      } catch {
        throw WireError(error)
      }
      try base.write(connection.takeOutput())
    }
  }

  /// Sends TLS's closing message, and closes the base channel. A client that has already disconnected is not an error.
  package func close() {
    connection.withLock { connection in
      connection.close()
      try? base.write(connection.takeOutput())
    }
    base.close()
  }
}

extension WireError {
  fileprivate init(_ error: TLSError) {
    switch error.code {
    case .untrusted: self.init(.untrusted, error.reason)
    case .identity, .handshake, .broken: self.init(.malformed, error.reason)
    }
  }
}
