import Foundation
import KeychainServices

/// Passwords by service and account, without a query dictionary.
public enum PlainPasswords {
  /// Stores a password, and replaces an existing one.
  ///
  /// - Throws: `.badArguments` if the service, account or password is empty, or the keychain's status if a call fails.
  ///   An empty password also removes the existing one.
  public static func setPassword(_ password: String, service: String, account: String) throws(KeychainFailure) {
    let entry = try entry(service, account)
    let removed = SecItemDelete(entry as CFDictionary)
    if password.isEmpty { throw .badArguments }
    if removed != errSecItemNotFound { try KeychainFailure.check(removed) }
    var item = entry
    item[kSecValueData as String] = Data(password.utf8)
    try KeychainFailure.check(SecItemAdd(item as CFDictionary, nil))
  }

  /// Returns the password of an account, or `nil` if the entry's secret is empty or not UTF-8.
  ///
  /// - Throws: `.badArguments` if the service or account is empty, or the keychain's status: -25300 if there is no
  ///   entry.
  public static func password(service: String, account: String) throws(KeychainFailure) -> String? {
    var query = try entry(service, account)
    query[kSecReturnData as String] = true
    query[kSecMatchLimit as String] = kSecMatchLimitOne
    var result: CFTypeRef?
    try KeychainFailure.check(SecItemCopyMatching(query as CFDictionary, &result))
    guard let data = result as? Data, !data.isEmpty else { return nil }
    return String(data: data, encoding: .utf8)
  }

  /// Returns the password of an account, which must exist.
  ///
  /// - Throws: `.noPassword` if there is no entry, or its secret is empty or not UTF-8; `.badArguments` if the service
  ///   or account is empty; or the keychain's status.
  public static func requiredPassword(service: String, account: String) throws(KeychainFailure) -> String {
    do throws(KeychainFailure) {
      guard let password = try password(service: service, account: account) else { throw .noPassword }
      return password
    } catch {
      throw error.status == errSecItemNotFound ? .noPassword : error
    }
  }

  /// Removes the password of an account.
  ///
  /// - Throws: `.badArguments` if the service or account is empty, or the keychain's status: -25300 if there is no
  ///   entry.
  public static func deletePassword(service: String, account: String) throws(KeychainFailure) {
    try KeychainFailure.check(SecItemDelete(try entry(service, account) as CFDictionary))
  }

  private static func entry(_ service: String, _ account: String) throws(KeychainFailure) -> [String: Any] {
    guard !service.isEmpty, !account.isEmpty else { throw .badArguments }
    return [
      kSecClass as String: kSecClassGenericPassword,
      kSecAttrService as String: service,
      kSecAttrAccount as String: account,
    ]
  }
}
