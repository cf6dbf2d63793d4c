public import KeychainFormats
public import KeychainStore

/// How a keychain call ends that does not succeed: Apple's status, and the reason in words without any value.
public struct SecItemError: ExplainedError, Equatable {
  public let status: SecItemStatus
  public let reason: String

  public init(_ status: SecItemStatus, _ reason: String) {
    self.status = status
    self.reason = reason
  }

  /// What the keychain database reported.
  public init(_ error: KeychainStoreError) {
    self.init(error.status, error.reason)
  }

  public var explanation: ErrorExplanation {
    .init(category, "the keychain answers \(status.rawValue) (\(status.constantName))", advice: advice)
  }

  public var category: ErrorCategory { status.category }
  public var advice: String { status.advice }
}

/// Runs a piece of the database's work and turns what it throws into the status of a call.
func asCall<Value>(_ body: () throws(KeychainStoreError) -> Value) throws(SecItemError) -> Value {
  do throws(KeychainStoreError) { return try body() } catch { throw SecItemError(error) }
}
