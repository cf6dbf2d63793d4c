public import Basics
import KeychainCrypto
import KeychainFormats

/// Why an item or a value is none that a keychain can hold. Told without any database.
public struct KeychainRuleError: ExplainedError, Equatable {
  /// What went wrong, with the name that Apple's `SecBase.h` gives its result code.
  public enum Code: String, Sendable, CaseIterable {
    /// A question or an item that makes no sense.
    case parameter
    /// The kind of item has no such attribute.
    case noSuchAttribute
    /// The item of a backup is none that can be stored.
    case decode
    /// The cryptography itself failed.
    case notAvailable
  }

  /// What a rule refuses, for a program to switch on.
  public let code: Code
  /// The fact found; it quotes no value of an item.
  public let reason: String

  /// Creates an error of a code and a reason.
  public init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  /// One sentence and one advice for each code.
  public var meaning: ErrorMeaning { code.meaning }
}

extension KeychainRuleError.Code {
  package var meaning: ErrorMeaning {
    switch self {
    case .parameter:
      .init(.failed, "the keychain does not accept this", advice: "see the attributes of this kind of item")
    case .noSuchAttribute:
      .init(.failed, "this kind of item has no such attribute", advice: "see the attributes of this kind of item")
    case .decode: .init(.damaged, "the item cannot be read", advice: "restore the item from a backup")
    case .notAvailable:
      .init(.failed, "the keychain is not available", advice: "check that the device's folder is complete")
    }
  }
}

extension KeychainRuleError {
  init(_ error: DataProtectionError) { self.init(.notAvailable, error.description) }

  /// Why an item has no digest: it has no encoding, or nothing computes one.
  init(digesting error: ItemSealError) {
    switch error.fault {
    case .malformed: self.init(.parameter, error.reason)
    case .locked, .noClassKey, .deviceBound, .classKeyDamaged, .keyUnwrapFailed, .tagMismatch, .unsupportedVersion,
      .failed:
      self.init(.notAvailable, error.reason)
    }
  }
}
