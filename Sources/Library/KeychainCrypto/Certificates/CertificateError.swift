package import Basics
import KeychainFormats

/// An error in a certificate or key. It contains no bytes of a key.
package struct CertificateError: ExplainedError, Equatable {
  /// The kinds of errors.
  package enum Code: String, Sendable {
    /// The bytes follow none of the supported formats, or end too early.
    case malformed
    /// The private key is encrypted with a password.
    case encrypted
    /// The password of the file is wrong.
    case wrongPassword
    /// The bytes are well-formed but of a different kind, such as a certificate instead of a key.
    case unexpectedKind
    /// Keychains do not store this algorithm, curve or format.
    case unsupported
    /// A size is outside its limits.
    case overLimit
    /// The parts of a key do not match each other.
    case mismatch
    /// OpenSSL rejected a call that cannot fail with valid arguments.
    case failed
  }

  /// The kind of error.
  package let code: Code
  /// The reason, which contains no bytes of a key.
  package let reason: String

  /// Creates an error with a code and a reason.
  package init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  /// A description and a suggestion for each code.
  package var meaning: ErrorMeaning {
    switch code {
    case .malformed: .init(.damaged, "this is not a certificate or key", advice: "a certificate or key in PEM or DER")
    case .encrypted: .init(.refused, "the private key is encrypted", advice: "decrypt it first: openssl pkey -in FILE")
    case .wrongPassword:
      .init(
        .refused, "the password is wrong, or the file was changed", advice: "the password that the file was made with")
    case .unexpectedKind: .init(.refused, "this is not the expected kind of item", advice: "the other kind of item")
    case .unsupported:
      .init(.refused, "this kind of key is not supported", advice: "an RSA key, or one on P-256, P-384 or P-521")
    case .overLimit: .init(.refused, "the certificate or key is over a limit", advice: "don't trust this file")
    case .mismatch: .init(.damaged, "the parts of the key do not match", advice: "another copy of the key")
    case .failed:
      .init(.failed, "a cryptographic operation failed", advice: "check the installation of OpenSSL's libcrypto")
    }
  }
}

extension CertificateError {
  static func openSSL(_ call: String) -> CertificateError { CertificateError(.failed, "OpenSSL refused \(call)") }

  init(_ error: DataProtectionError) { self.init(.failed, error.reason) }
}
