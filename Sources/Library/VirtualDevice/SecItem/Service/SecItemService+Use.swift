public import KeychainFormats

extension SecItemService {
  /// Asks the person for what an operation of a token with a key takes, as the access control says that its maker named.
  ///
  /// - Throws: `.authFailed`, `.userCanceled`; `.interactionNotAllowed` where nobody is there.
  public static func authorize(
    _ operation: AccessOperation, with key: KeychainItem, environment: SecItemEnvironment
  ) throws(SecItemError) {
    guard let operations = TokenValue(of: key)?.accessControl else { return }
    let requirement = AccessControl(protection: .always, operations: operations).requirement(for: operation)
    try SecItemAuthenticator(environment).satisfy([key], operation) { _ in requirement }
  }
}
