public import Basics
import KeychainFormats

/// Why keys could not be derived, opened, made or used.
///
/// One item that cannot be opened is an `ItemSealError` instead. No case carries key material or a password.
public struct DataProtectionError: ExplainedError, Equatable {
  /// What went wrong with the keys.
  public enum Code: String, Sendable {
    /// No class key unwraps with the password that was given.
    case wrongPassword
    /// No class key unwraps with the passcode that was given.
    case wrongPasscode
    /// The keybag asks for more work than the caller accepts. Thrown before any work is done.
    case roundsOverLimit
    /// The caller's progress closure asked to stop.
    case cancelled
    /// A keybag whose fields contradict each other or whose signature is wrong.
    case damagedKeybag
    /// A class key that every device wraps with its hardware, and that is not wrapped so.
    case hardwareLayerMissing
    /// A field is absent without which the keybag cannot be used.
    case missingField
    /// Something well-formed that this project does not do.
    case unsupported
    /// No key for this class: the bag has none, or it needs a device or a password that was not given.
    case keyUnavailable
    /// A wrapped key that its class key does not open.
    case keyUnwrapFailed
    /// Encrypted bytes, a stored key or a device's memory that cannot be what they should.
    case malformed
    /// The source of randomness failed.
    case randomFailed
    /// OpenSSL refused a call that cannot fail with sound arguments.
    case cryptoFailed
  }

  /// What went wrong, for a program to switch on.
  public let code: Code
  /// The fact found, with counts and classes and without key material.
  public let reason: String

  /// Creates an error of a code and a reason.
  public init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  /// One sentence and one advice for each code.
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
  /// OpenSSL's own reason would add nothing a caller can act on, so only the call is named.
  static func crypto(_ call: String) -> DataProtectionError {
    DataProtectionError(.cryptoFailed, "OpenSSL refused \(call)")
  }
}
