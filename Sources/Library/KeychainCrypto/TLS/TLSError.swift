internal import COpenSSL

/// The reason why a TLS connection failed. It contains no key and no byte of the connection.
package struct TLSError: Error, Sendable {
  /// The kinds of failure.
  package enum Code: Sendable {
    /// A certificate or key cannot be used.
    case identity
    /// The peer does not speak TLS, or does not meet the requirements.
    case handshake
    /// The peer's certificate is not one of the accepted certificates.
    case untrusted
    /// The connection ended without TLS's close notification, or bytes were changed on the way.
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
