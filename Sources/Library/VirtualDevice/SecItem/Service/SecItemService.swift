import Basics
import KeychainCrypto
package import KeychainFormats
import KeychainRules
package import Keychains

/// Apple's four keychain calls on a device's keychain, with the results of Apple's daemon.
///
/// A call returns the value that the caller's result pointer would receive, or `nil` if there is none. Any result other
/// than `errSecSuccess` is a `SecItemError` with Apple's status.
///
/// Source: Apple `SecItem.m`, `SecItemServer.c`, `SecDbQuery.c`, `SecItemDb.c`.
package struct SecItemService: Sendable {
  /// The database for all calls.
  package let store: KeychainStore

  /// Creates a service for a database. The caller, the keys and the context are specified for each call.
  package init(store: KeychainStore) { self.store = store }
}

extension SecItemService {
  /// Requests the authentication that a token's access control requires for an operation with a key.
  ///
  /// - Throws: `.authFailed`, `.userCanceled`; `.interactionNotAllowed` if no user is present.
  package static func authorize(
    _ operation: AccessOperation, with key: KeychainItem, environment: SecItemEnvironment
  ) throws(SecItemError) {
    guard let operations = TokenValue(of: key)?.accessControl else { return }
    let requirement = AccessControl(protection: .always, operations: operations).requirement(for: operation)
    try SecItemAuthenticator(environment).satisfy([key], operation) { _ in requirement }
  }
}

extension RandomSource {
  /// Returns random bytes, or throws the error of a keychain call.
  func bytesForCall(count: Int) throws(SecItemError) -> [UInt8] {
    do throws(KeychainRuleError) {
      return try NewItemDefaults.randomBytes(self, count: count)
    } catch {
      throw SecItemError(KeyhaulError(rule: error))
    }
  }
}
