package import Basics
import KeychainFormats
import Keychains

/// The error of a keychain call: Apple's status, and a reason without any values.
package struct SecItemError: ExplainedError, Equatable {
  /// The status that Apple's call returns.
  package let status: SecItemStatus
  /// The reason, without any value of a query or an item.
  package let reason: String

  /// Creates an error.
  package init(_ status: SecItemStatus, _ reason: String) {
    self.status = status
    self.reason = reason
  }

  /// Creates the error of a call from an error of the device or its keychain. An error without a status of its own
  /// means that the keychain is not available.
  package init(_ error: KeyhaulError) {
    self.init(error.status, error.reason)
  }

  /// The description of the status, with its number, constant and advice.
  package var meaning: ErrorMeaning {
    .init(category, "the keychain answers \(status.rawValue) (\(status.constantName))", advice: .words(advice))
  }

  /// The category of the status.
  package var category: ErrorCategory { status.category }
  /// The advice for the status.
  package var advice: String { status.advice }
}

/// Runs the closure and converts its error to the error of a call.
func translatingKeyhaulErrors<Value>(_ body: () throws(KeyhaulError) -> Value) throws(SecItemError) -> Value {
  try converting(SecItemError.init, body)
}
