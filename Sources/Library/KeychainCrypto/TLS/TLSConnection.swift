import Basics
internal import COpenSSL

/// The server's side of a TLS connection. It converts between network bytes and application bytes, but uses no socket.
///
/// Only a single thread at a time may use it.
package final class TLSConnection {
  /// The result of an attempt to read.
  package enum Reading: Sendable {
    case bytes([UInt8])
    /// More bytes from the network are needed.
    case needsInput
    /// The peer has ended the connection with TLS's close notification.
    case closed
  }

  private let connection: OpaquePointer
  /// The bytes from the network and for the network. The connection owns both buffers.
  private let input: OpaquePointer
  private let output: OpaquePointer
  private let identity: TLSIdentity

  /// Creates the server's side of a connection.
  ///
  /// - Throws: `.identity` if OpenSSL has no memory.
  package init(_ identity: TLSIdentity) throws(TLSError) {
    guard let connection = SSL_new(identity.context) else { throw .openSSL(.identity, "no TLS connection") }
    guard let input = BIO_new(BIO_s_mem()), let output = BIO_new(BIO_s_mem()) else {
      SSL_free(connection)
      throw .openSSL(.identity, "no memory for a TLS connection")
    }
    SSL_set_bio(connection, input, output)
    SSL_set_accept_state(connection)
    (self.connection, self.input, self.output, self.identity) = (connection, input, output, identity)
  }

  deinit { SSL_free(connection) }

  /// Adds bytes that arrived from the network.
  package func receive(_ bytes: [UInt8]) {
    _ = bytes.withUnsafeBytes { BIO_write(input, $0.baseAddress, Int32(clamping: $0.count)) }
  }

  /// Returns the bytes to send, which have accumulated since the last call.
  package func takeOutput() -> [UInt8] {
    let count = Int(BIO_ctrl_pending(output))
    guard count > 0 else { return [] }
    return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      initialized = max(0, Int(BIO_read(output, buffer.baseAddress, Int32(clamping: count))))
    }
  }

  /// Continues the handshake with the bytes that have arrived from the network.
  ///
  /// - Returns: Whether the handshake is complete.
  /// - Throws: `.handshake` if the peer does not speak TLS 1.2 or 1.3, or sends no certificate.
  package func continueHandshake() throws(TLSError) -> Bool {
    ERR_clear_error()
    let result = SSL_do_handshake(connection)
    if result == 1 { return true }
    guard SSL_get_error(connection, result) == SSL_ERROR_WANT_READ else {
      throw .openSSL(.handshake, "the TLS handshake failed")
    }
    return false
  }

  /// Checks that the peer's certificate equals one of the given certificates, byte for byte. Nothing else about it is
  /// checked.
  ///
  /// - Throws: `.untrusted` if the peer has no certificate or a different one.
  package func requirePeer(among certificates: [[UInt8]]) throws(TLSError) {
    guard let certificate = SSL_get1_peer_certificate(connection) else {
      throw TLSError(.untrusted, "the client showed no certificate")
    }
    defer { X509_free(certificate) }
    var der: UnsafeMutablePointer<UInt8>?
    let count = Int(i2d_X509(certificate, &der))
    guard count > 0, let der else { throw .openSSL(.untrusted, "the client's certificate cannot be encoded") }
    defer { CRYPTO_free(der, nil, 0) }
    let peerCertificate = UnsafeBufferPointer(start: der, count: count)
    guard certificates.contains(where: { $0.elementsEqual(peerCertificate) }) else {
      throw TLSError(.untrusted, "the client's certificate is not one of its pairing")
    }
  }

  /// Decrypts bytes for the application.
  ///
  /// - Throws: `.broken` if the bytes from the network are not the bytes that the peer encrypted.
  package func read(upTo count: Int) throws(TLSError) -> Reading {
    ERR_clear_error()
    var result: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      result = SSL_read(connection, buffer.baseAddress, Int32(clamping: count))
      initialized = max(0, Int(result))
    }
    if result > 0 { return .bytes(bytes) }
    switch SSL_get_error(connection, result) {
    case SSL_ERROR_WANT_READ: return .needsInput
    case SSL_ERROR_ZERO_RETURN: return .closed
    default: throw .openSSL(.broken, "the TLS connection is broken")
    }
  }

  /// Encrypts bytes from the application.
  ///
  /// - Throws: `.broken` if the connection has ended.
  package func write(_ bytes: [UInt8]) throws(TLSError) {
    var written = 0
    while written < bytes.count {
      ERR_clear_error()
      let chunkByteCount = Int32(clamping: bytes.count - written)
      let count = bytes.withUnsafeBytes { buffer in
        buffer.baseAddress.map { SSL_write(connection, $0 + written, chunkByteCount) } ?? -1
      }
      guard count > 0 else { throw .openSSL(.broken, "the TLS connection is broken") }
      written += Int(count)
    }
  }

  /// Adds TLS's close notification to the bytes to send.
  package func close() {
    ERR_clear_error()
    _ = SSL_shutdown(connection)
    ERR_clear_error()
  }
}
