package import Basics
internal import COpenSSL
import KeychainFormats

/// The reason why a TLS connection failed. It contains no key and no byte of the connection.
package struct TLSError: Error, Sendable {
  /// The kinds of failure.
  package enum Code: Sendable {
    /// A certificate or key cannot be used.
    case identity
    /// The peer does not speak TLS, or does not meet the requirements.
    case handshake
    /// The peer's certificate is not one of the accepted ones.
    case untrusted
    /// The connection ended without TLS's close notification.
    case broken
  }

  /// The kind of failure.
  package let code: Code
  /// The reason, with OpenSSL's error if there is one.
  package let reason: String

  init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  /// Creates an error with the reason of OpenSSL's last error, and clears OpenSSL's error queue.
  static func openSSL(_ code: Code, _ reason: String) -> TLSError {
    let number = ERR_peek_last_error()
    ERR_clear_error()
    guard number != 0, let text = ERR_reason_error_string(number) else { return TLSError(code, reason) }
    return TLSError(code, "\(reason): \(String(cString: text))")
  }
}

/// The certificate and private key of a TLS server.
package final class TLSIdentity: Sendable {
  /// OpenSSL counts the references to a context under a lock of its own, and connections only read it.
  nonisolated(unsafe) let context: OpaquePointer

  /// Creates an identity. Connections accept TLS 1.2 and 1.3, require the peer's certificate, and resume no earlier
  /// session.
  ///
  /// - Parameters:
  ///   - certificate: The DER of the certificate.
  ///   - privateKey: The DER of its RSAPrivateKey (PKCS#1).
  /// - Throws: `.identity` if either cannot be read or the key does not belong to the certificate.
  package init(certificate: [UInt8], privateKey: SensitiveBytes) throws(TLSError) {
    guard let context = SSL_CTX_new(TLS_server_method()) else { throw .openSSL(.identity, "no TLS context") }
    do throws(TLSError) {
      try Self.use(certificate, privateKey, in: context)
    } catch {
      SSL_CTX_free(context)
      throw error
    }
    SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
    SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
    // The peer would not send its certificate again in a resumed session.
    SSL_CTX_set_options(context, Self.noTicket | Self.noRenegotiation)
    SSL_CTX_set_num_tickets(context, 0)
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
    // Accepts any certificate here. `TLSConnection.requirePeer` compares it byte for byte after the handshake, which
    // proves that the peer has its key.
    SSL_CTX_set_cert_verify_callback(context, { _, _ in 1 }, nil)
    self.context = context
  }

  // OpenSSL's `SSL_OP_NO_TICKET` and `SSL_OP_NO_RENEGOTIATION`, which are macros that Swift cannot import.
  private static let noTicket: UInt64 = 1 << 14
  private static let noRenegotiation: UInt64 = 1 << 30

  deinit { SSL_CTX_free(context) }

  private static func use(
    _ certificate: [UInt8], _ privateKey: SensitiveBytes, in context: OpaquePointer
  ) throws(TLSError) {
    let isCertificateUsed = certificate.withUnsafeBufferPointer { bytes in
      SSL_CTX_use_certificate_ASN1(context, Int32(clamping: bytes.count), bytes.baseAddress)
    }
    guard isCertificateUsed == 1 else { throw .openSSL(.identity, "the certificate cannot be used") }
    let isKeyUsed = privateKey.withBytes { bytes in
      SSL_CTX_use_PrivateKey_ASN1(
        EVP_PKEY_RSA, context, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
    }
    guard isKeyUsed == 1, SSL_CTX_check_private_key(context) == 1 else {
      throw .openSSL(.identity, "the private key does not belong to the certificate")
    }
  }
}
