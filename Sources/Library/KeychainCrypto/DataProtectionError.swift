public import Basics
import KeychainFormats

/// An error in deriving, unlocking, creating or using keys.
///
/// A single item that cannot be decrypted is not an error of this type; it has a `Reason` instead. The error contains no
/// key material and no password.
public struct DataProtectionError: ExplainedError, Equatable {
  /// The kinds of errors.
  public enum Code: String, Sendable {
    /// No class key can be unwrapped with the password.
    case wrongPassword
    /// No class key can be unwrapped with the passcode.
    case wrongPasscode
    /// The keybag requires more iterations than the caller accepts. Thrown before any work is done.
    case roundsOverLimit
    /// The caller's progress closure canceled the operation.
    case cancelled
    /// The fields of a keybag contradict each other, or its signature is wrong.
    case damagedKeybag
    /// A class key is not wrapped with the device key, although every device wraps it.
    case hardwareLayerMissing
    /// A required field of the keybag is missing.
    case missingField
    /// The data is well-formed but not supported.
    case unsupported
    /// No key is available for the class. The keybag has none, or the key requires a device or a password.
    case keyUnavailable
    /// The class key does not unwrap a wrapped key.
    case keyUnwrapFailed
    /// Encrypted bytes, a stored key or a device's memory are not valid.
    case malformed
    /// No random bytes are available.
    case randomFailed
    /// OpenSSL rejected a call that cannot fail with valid arguments.
    case cryptoFailed
  }

  /// The kind of error.
  public let code: Code
  /// The reason, with counts and classes but without key material.
  public let reason: String

  /// Creates an error with a code and a reason.
  package init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  /// A description and a suggestion for each code.
  public var meaning: ErrorMeaning {
    switch code {
    case .wrongPassword:
      .init(
        .wrongPassword, "the password is wrong",
        advice: "the password set when the backup was made; it is not the device's passcode")
    case .wrongPasscode:
      .init(
        .wrongPassword, "the passcode is wrong",
        advice: "the device's passcode; it is not the password of a backup")
    case .roundsOverLimit:
      .init(
        .refused, "the keybag requires too many iterations",
        advice: "don't trust this file; to read it anyway, set a higher limit")
    case .cancelled: .init(.failed, "the key derivation was stopped", advice: "run it again and let it finish")
    case .hardwareLayerMissing:
      .init(
        .refused, "no device writes such a keybag",
        advice: "don't trust this backup; use the source device's own copy")
    case .damagedKeybag, .missingField: .init(.damaged, "the keybag is damaged", advice: "another copy")
    case .unsupported:
      .init(.refused, "this is not supported", advice: "see the documentation for what can be read and written")
    case .keyUnavailable:
      .init(.failed, "a key is not available", advice: "the backup's password, or the source device")
    case .keyUnwrapFailed: .init(.damaged, "a wrapped key cannot be unwrapped", advice: "another copy")
    case .malformed: .init(.damaged, "encrypted data is damaged", advice: "another copy")
    case .randomFailed: .init(.failed, "no random numbers", advice: "check the installation of OpenSSL's libcrypto")
    case .cryptoFailed:
      .init(.failed, "a cryptographic operation failed", advice: "check the installation of OpenSSL's libcrypto")
    }
  }
}

extension DataProtectionError {
  /// Creates an error that names the failed call; OpenSSL's own reason would not help a caller.
  static func crypto(_ call: String) -> DataProtectionError {
    DataProtectionError(.cryptoFailed, "OpenSSL refused \(call)")
  }
}
