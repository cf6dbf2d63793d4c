package import Basics
import KeychainFormats
import Keychains

/// How a keychain call ends that does not succeed: Apple's status, and the reason in words without any value.
package struct SecItemError: ExplainedError, Equatable {
  /// The number that Apple's call gives back.
  package let status: SecItemStatus
  /// What was found, in words without any value of a query or an item.
  package let reason: String

  /// Creates an error of a status and a reason.
  package init(_ status: SecItemStatus, _ reason: String) {
    self.status = status
    self.reason = reason
  }

  /// Creates the error of a call that an error of a device or its keychain ended. A call knows of no device, only
  /// that its keychain is not available.
  package init(_ error: KeyhaulError) {
    self.init(error.status, error.reason)
  }

  /// The status with its number and constant, and the advice for it.
  package var meaning: ErrorMeaning {
    .init(category, "the keychain answers \(status.rawValue) (\(status.constantName))", advice: .words(advice))
  }

  /// The kind of failure, which the status decides.
  package var category: ErrorCategory { status.category }
  /// One thing to do next, which the status decides.
  package var advice: String { status.advice }
}

/// Runs a piece of work on a device or its keychain, and turns what it throws into the status of a call.
func asCall<Value>(_ body: () throws(KeyhaulError) -> Value) throws(SecItemError) -> Value {
  try converting(SecItemError.init, body)
}
