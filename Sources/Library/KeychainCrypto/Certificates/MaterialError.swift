public import Basics
import KeychainFormats

/// Why bytes are no certificate or key that a keychain takes. No case carries a byte of a key.
public struct MaterialError: ExplainedError, Equatable {
  /// What is wrong with the bytes.
  public enum Code: String, Sendable {
    /// Bytes that follow none of the forms, or end too early.
    case malformed
    /// A private key behind a password.
    case encrypted
    /// A file behind a password, and another password than the one given.
    case wrongPassword
    /// Something well-formed that is not what was asked for, such as a certificate instead of a key.
    case unexpectedKind
    /// An algorithm, a curve or a form that keychains do not store.
    case unsupported
    /// Larger or smaller than a named limit accepts.
    case overLimit
    /// The parts of a key do not belong together.
    case mismatch
    /// OpenSSL refused a call that cannot fail with sound arguments.
    case failed
  }

  /// What is wrong, for a program to switch on.
  public let code: Code
  /// The fact found; it quotes no byte of a key.
  public let reason: String

  /// Creates an error of a code and a reason.
  public init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  /// One sentence and one advice for each code.
  public var meaning: ErrorMeaning {
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

extension MaterialError {
  static func openSSL(_ call: String) -> MaterialError { MaterialError(.failed, "OpenSSL refused \(call)") }

  init(_ error: DataProtectionError) { self.init(.failed, error.reason) }
}
