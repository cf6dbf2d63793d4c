import Foundation
import KeychainServices  // on iOS: import Security

/// The app's own code, as it is written for iOS.
enum SignIn {
  static func remember() {
    save("session token", "t-4711", kSecAttrAccessibleAfterFirstUnlock)
    save("device id", "d-0815", kSecAttrAccessibleWhenUnlockedThisDeviceOnly)
  }

  private static func save(_ name: String, _ secret: String, _ accessible: CFString) {
    let item: [String: Any] = [
      kSecClass as String: kSecClassGenericPassword,
      kSecAttrService as String: "org.example.app",
      kSecAttrAccount as String: name,
      kSecAttrAccessible as String: accessible,
      kSecValueData as String: Data(secret.utf8),
    ]
    SecItemAdd(item as CFDictionary, nil)
  }
}
