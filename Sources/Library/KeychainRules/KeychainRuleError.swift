package import Basics
import KeychainCrypto
import KeychainFormats

/// An error for an item or value that a keychain cannot store. It is detected without a database.
package struct KeychainRuleError: ExplainedError, Equatable {
  /// A kind of failure, with the name of its result code in Apple's `SecBase.h`.
  package enum Code: String, Sendable, CaseIterable {
    /// A query or an item is not valid.
    case parameter
    /// The kind of item has no such attribute.
    case noSuchAttribute
    /// An item of a backup cannot be stored.
    case decode
    /// A cryptographic operation failed.
    case notAvailable
  }

  /// The kind of failure.
  package let code: Code
  /// The reason, which contains no value of an item.
  package let reason: String

  /// Creates an error with a code and a reason.
  package init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  /// A description and a suggestion for each code.
  package var meaning: ErrorMeaning { code.meaning }
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

  /// Creates an error for an item whose digest cannot be computed: it has no encoding, or SHA-1 is not available.
  init(digesting error: ItemCryptoError) {
    switch error.fault {
    case .malformed: self.init(.parameter, error.reason)
    case .locked, .noClassKey, .deviceBound, .classKeyDamaged, .keyUnwrapFailed, .tagMismatch, .unsupportedVersion,
      .failed:
      self.init(.notAvailable, error.reason)
    }
  }
}
