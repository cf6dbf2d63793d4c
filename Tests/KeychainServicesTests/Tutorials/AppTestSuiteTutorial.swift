import Foundation
import KeyhaulTesting
import Testing

/// The app's own code, as it is written for iOS.
enum Tokens {
  static func save(_ name: String, _ accessible: CFString, group: String? = nil) -> OSStatus {
    var item: [String: Any] = [
      kSecClass as String: kSecClassGenericPassword,
      kSecAttrService as String: "org.example.app",
      kSecAttrAccount as String: name,
      kSecAttrAccessible as String: accessible,
      kSecValueData as String: Data("token of \(name)".utf8),
    ]
    if let group { item[kSecAttrAccessGroup as String] = group }
    return SecItemAdd(item as CFDictionary, nil)
  }

  static func canRead(_ name: String) -> Bool {
    let query: [String: Any] = [
      kSecClass as String: kSecClassGenericPassword,
      kSecAttrService as String: "org.example.app",
      kSecAttrAccount as String: name,
      kSecReturnData as String: true,
    ]
    var data: CFTypeRef?
    return SecItemCopyMatching(query as CFDictionary, &data) == errSecSuccess
  }
}

@Test func whatANewPhoneGets() throws {
  let phone = try Phone()
  try phone.run {
    #expect(Tokens.save("mail", kSecAttrAccessibleWhenUnlocked) == errSecSuccess)
    #expect(Tokens.save("push", kSecAttrAccessibleWhenUnlockedThisDeviceOnly) == errSecSuccess)
  }
  let new = try phone.move(to: .newPhone, backup: .encrypted).restore()
  try new.run {
    #expect(Tokens.canRead("mail"))
    #expect(!Tokens.canRead("push"))
  }
}

@Test func whatALockedPhoneGives() throws {
  let phone = try Phone()
  try phone.run {
    #expect(Tokens.save("mail", kSecAttrAccessibleWhenUnlocked) == errSecSuccess)
    #expect(Tokens.save("sync", kSecAttrAccessibleAfterFirstUnlock) == errSecSuccess)
  }
  try phone.lock()
  #expect(try phone.run { [Tokens.canRead("mail"), Tokens.canRead("sync")] } == [false, true])
  try phone.restart()
  #expect(try phone.run { [Tokens.canRead("mail"), Tokens.canRead("sync")] } == [false, false])
  try phone.unlock()
  #expect(try phone.run { [Tokens.canRead("mail"), Tokens.canRead("sync")] } == [true, true])
}

@Test func whatAWidgetSees() throws {
  let phone = try Phone(apps: ["app": ["team.app", "team.shared"], "widget": ["team.shared"]])
  try phone.run(as: "app") {
    #expect(Tokens.save("mail", kSecAttrAccessibleAfterFirstUnlock) == errSecSuccess)
    #expect(Tokens.save("feed", kSecAttrAccessibleAfterFirstUnlock, group: "team.shared") == errSecSuccess)
  }
  #expect(try phone.run(as: "widget") { [Tokens.canRead("mail"), Tokens.canRead("feed")] } == [false, true])
}
