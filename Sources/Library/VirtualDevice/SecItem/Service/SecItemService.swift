public import Keychains

/// Apple's four keychain calls on a device's keychain, as its daemon answers them.
///
/// A call gives back what the caller's result pointer would receive, `nil` where that is nothing; every other end than
/// `errSecSuccess` is a `SecItemError` with Apple's status.
/// Source: Apple `SecItem.m`, `SecItemServer.c`, `SecDbQuery.c`, `SecItemDb.c`.
public struct SecItemService: Sendable {
  /// The database that the calls read and change.
  public let store: KeychainStore

  /// Creates the four calls over a database; the caller, the keys and the environment come with each call.
  public init(store: KeychainStore) { self.store = store }
}
