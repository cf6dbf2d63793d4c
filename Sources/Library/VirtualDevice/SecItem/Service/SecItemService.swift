import Basics
import KeychainCrypto
package import KeychainFormats
import KeychainRules
package import Keychains

/// Apple's four keychain calls on a device's keychain, as its daemon answers them.
///
/// A call gives back what the caller's result pointer would receive, `nil` if that is nothing; every other end than
/// `errSecSuccess` is a `SecItemError` with Apple's status.
/// Source: Apple `SecItem.m`, `SecItemServer.c`, `SecDbQuery.c`, `SecItemDb.c`.
package struct SecItemService: Sendable {
  /// The database that the calls read and change.
  package let store: KeychainStore

  /// Creates the four calls over a database; the caller, the keys and the environment come with each call.
  package init(store: KeychainStore) { self.store = store }
}

extension SecItemService {
  /// Asks the person for what an operation of a token with a key takes, as the access control says that its maker named.
  ///
  /// - Throws: `.authFailed`, `.userCanceled`; `.interactionNotAllowed` where nobody is there.
  package static func authorize(
    _ operation: AccessOperation, with key: KeychainItem, environment: SecItemEnvironment
  ) throws(SecItemError) {
    guard let operations = TokenValue(of: key)?.accessControl else { return }
    let requirement = AccessControl(protection: .always, operations: operations).requirement(for: operation)
    try SecItemAuthenticator(environment).satisfy([key], operation) { _ in requirement }
  }
}

extension RandomSource {
  /// Bytes that a call needs; where there are none, that is how it ends.
  func bytesForCall(count: Int) throws(SecItemError) -> [UInt8] {
    do throws(KeychainRuleError) {
      return try NewItemDefaults.randomBytes(self, count: count)
    } catch {
      throw SecItemError(KeyhaulError(rule: error))
    }
  }
}
