package import Basics
internal import COpenSSL
import KeychainFormats

/// The certificate and private key of a TLS server.
package final class TLSIdentity: Sendable {
  /// OpenSSL's context for connections. Several threads may use it, because OpenSSL synchronizes the reference count and
  /// connections only read the context.
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
    // No session is resumed, because the peer would not send its certificate again.
    SSL_CTX_set_options(context, Self.noTicket | Self.noRenegotiation)
    SSL_CTX_set_num_tickets(context, 0)
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
    // Accepts any certificate here. The handshake proves that the peer has the certificate's key, and
    // `TLSConnection.requirePeer` then compares the certificate byte for byte.
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
    let certificateStatus = certificate.withUnsafeBufferPointer { bytes in
      SSL_CTX_use_certificate_ASN1(context, Int32(clamping: bytes.count), bytes.baseAddress)
    }
    guard certificateStatus == 1 else { throw .openSSL(.identity, "the certificate cannot be used") }
    let keyStatus = privateKey.withBytes { bytes in
      SSL_CTX_use_PrivateKey_ASN1(
        EVP_PKEY_RSA, context, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
    }
    guard keyStatus == 1, SSL_CTX_check_private_key(context) == 1 else {
      throw .openSSL(.identity, "the private key does not belong to the certificate")
    }
  }
}
