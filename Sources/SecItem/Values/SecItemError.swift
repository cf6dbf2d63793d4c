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

  public var category: ErrorCategory {
    switch status {
    case .itemNotFound: .notFound
    case .interactionNotAllowed, .upgradePending: .locked
    case .authFailed, .authNeeded, .userCanceled, .missingEntitlement, .restrictedAPI, .readOnly, .policyDenied:
      .refused
    case .decode, .verifyFailed: .damaged
    case .success, .unimplemented, .diskFull, .ioError, .parameter, .allocate, .badRequest, .notAvailable,
      .duplicateItem, .noSuchAttribute, .invalidItemReference, .noSuchClass, .internalError, .serviceNotAvailable:
      .failed
    }
  }

  public var advice: String {
    switch status {
    case .parameter, .noSuchAttribute, .noSuchClass, .unimplemented, .badRequest:
      "compare the keys and their values with Apple's reference of the call"
    case .missingEntitlement: "use one of the app's access groups"
    case .restrictedAPI: "an App Clip cannot do this"
    case .interactionNotAllowed, .upgradePending: "unlock the device, or let the call ask the person"
    case .authFailed: "set a passcode, or authenticate"
    case .authNeeded, .userCanceled, .policyDenied: "let the person authenticate"
    case .duplicateItem: "update the item that is there, or delete it first"
    case .itemNotFound, .invalidItemReference: "search with fewer attributes"
    case .decode, .verifyFailed: "restore the item from a backup"
    case .diskFull: "free some space; nothing was changed"
    case .success, .ioError, .allocate, .notAvailable, .readOnly, .internalError, .serviceNotAvailable:
      "check that the device's folder is whole"
    }
  }
}

/// Runs a piece of the database's work and turns what it throws into the status of a call.
func asCall<Value>(_ body: () throws(KeychainStoreError) -> Value) throws(SecItemError) -> Value {
  do throws(KeychainStoreError) { return try body() } catch { throw SecItemError(error) }
}
