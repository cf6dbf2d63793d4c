import Basics
import Foundation
import KeychainServices  // on iOS: import Security

/// Keychain code as an iOS app would contain it.
enum SignIn {
  static let service = "org.example.app"

  static func remember() {
    add("session token", "t-4711", kSecAttrAccessibleAfterFirstUnlock)
    add("device id", "d-0815", kSecAttrAccessibleWhenUnlockedThisDeviceOnly)
  }

  @discardableResult
  static func add(
    _ account: String, _ secret: String, _ accessible: CFString = kSecAttrAccessibleWhenUnlocked,
    service: String = Self.service, group: String? = nil
  ) -> OSStatus {
    var item: [String: Any] = [
      kSecClass as String: kSecClassGenericPassword,
      kSecAttrService as String: service,
      kSecAttrAccount as String: account,
      kSecAttrAccessible as String: accessible,
      kSecValueData as String: Data(secret.utf8),
    ]
    if let group { item[kSecAttrAccessGroup as String] = group }
    return SecItemAdd(item as CFDictionary, nil)
  }

  static func secret(of account: String) -> String? {
    let query: [String: Any] = [
      kSecClass as String: kSecClassGenericPassword,
      kSecAttrAccount as String: account,
      kSecReturnData as String: true,
    ]
    var found: CFTypeRef?
    guard SecItemCopyMatching(query as CFDictionary, &found) == errSecSuccess, let data = found as? Data else {
      return nil
    }
    return String(bytes: data, encoding: .utf8)
  }

  /// Adds an item that requires authentication.
  @discardableResult
  static func addGuarded(_ account: String) -> OSStatus {
    let control = SecAccessControlCreateWithFlags(nil, kSecAttrAccessibleWhenUnlocked, .userPresence, nil)
    let item: [String: Any] = [
      kSecClass as String: kSecClassGenericPassword,
      kSecAttrService as String: service,
      kSecAttrAccount as String: account,
      kSecAttrAccessControl as String: control as Any,
      kSecValueData as String: Data("guarded".utf8),
    ]
    return SecItemAdd(item as CFDictionary, nil)
  }
}
