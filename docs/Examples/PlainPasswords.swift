import Foundation
import KeychainServices

/// Passwords by service and account, without a query dictionary.
public enum PlainPasswords {
  /// Stores a password, in the place of one that is there.
  ///
  /// - Throws: `.badArguments` for an empty service or account, and for an empty password, which also removes what is
  ///   there; else the keychain's status.
  public static func setPassword(_ password: String, service: String, account: String) throws(KeychainFailure) {
    let entry = try entry(service, account)
    let removed = SecItemDelete(entry as CFDictionary)
    if password.isEmpty { throw .badArguments }
    if removed != errSecItemNotFound { try KeychainFailure.check(removed) }
    var item = entry
    item[kSecValueData as String] = Data(password.utf8)
    try KeychainFailure.check(SecItemAdd(item as CFDictionary, nil))
  }

  /// The password of an account; `nil` where the entry's secret is empty or is no text.
  ///
  /// - Throws: `.badArguments`; else the keychain's status, -25300 where there is no entry.
  public static func password(service: String, account: String) throws(KeychainFailure) -> String? {
    var query = try entry(service, account)
    query[kSecReturnData as String] = true
    query[kSecMatchLimit as String] = kSecMatchLimitOne
    var result: CFTypeRef?
    try KeychainFailure.check(SecItemCopyMatching(query as CFDictionary, &result))
    guard let data = result as? Data, !data.isEmpty else { return nil }
    return String(data: data, encoding: .utf8)
  }

  /// The password of an account that needs to have one.
  ///
  /// - Throws: `.noPassword` where there is no entry or an empty one; `.badArguments`; else the keychain's status.
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
  /// - Throws: `.badArguments`; else the keychain's status, -25300 where there is no entry.
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
