import Basics
import Foundation
import KeychainServices
import Testing

@Suite("Story 2: the duplicate that wasn't", .onAPhone)
struct DuplicateStory {
  let phone: KeychainClient

  init() throws { phone = try DefaultKeychain.client() }

  private func genericPassword(_ attributes: [CFString: Any] = [:]) -> CFDictionary {
    let item: [CFString: Any] = [kSecClass: kSecClassGenericPassword]
    return item.merging(attributes) { $1 } as CFDictionary
  }

  @Test("Generic passwords that differ only in their generic attribute are duplicates (-25299)")
  func genericAttribute() {
    #expect(SecItemAdd(genericPassword([kSecAttrGeneric: Data("first".utf8)]), nil) == errSecSuccess)
    #expect(SecItemAdd(genericPassword([kSecAttrGeneric: Data("second".utf8)]), nil) == -25299)

    #expect(SecItemCopyMatching(genericPassword([kSecAttrGeneric: Data("first".utf8)]), nil) == errSecSuccess)
    #expect(SecItemCopyMatching(genericPassword([kSecAttrGeneric: Data("second".utf8)]), nil) == -25300)
  }

  @Test("Generic passwords with different accounts are separate items")
  func accounts() throws {
    for name in ["first", "second"] {
      let item = genericPassword([kSecAttrGeneric: Data(name.utf8), kSecAttrAccount: name])
      #expect(SecItemAdd(item, nil) == errSecSuccess)
    }
    for name in ["first", "second"] {
      #expect(SecItemCopyMatching(genericPassword([kSecAttrGeneric: Data(name.utf8)]), nil) == errSecSuccess)
    }
    #expect(try phone.itemCount() == 2)
  }

  @Test(
    "Only the account, service, and access group distinguish generic passwords",
    arguments: [
      (kSecAttrAccount as String, true), (kSecAttrService as String, true), (kSecAttrGeneric as String, false),
      (kSecAttrLabel as String, false), (kSecAttrDescription as String, false), (kSecAttrComment as String, false),
      (kSecAttrAccessGroup as String, true), (kSecAttrAccessible as String, false), (kSecAttrCreator as String, false),
      (kSecAttrType as String, false),
    ])
  func genericPasswordPrimaryKey(attribute: String, isDistinct: Bool) {
    let otherValue: Any =
      switch attribute {
      // The values of kSecAttrAccessGroup, kSecAttrAccessible, kSecAttrCreator, and kSecAttrType.
      case "agrp": "team.shared"
      case "pdmn": kSecAttrAccessibleAlways
      case "crtr", "type": 7
      default: "other"
      }
    #expect(SecItemAdd(genericPassword(), nil) == errSecSuccess)
    let status = SecItemAdd(genericPassword([attribute as NSString: otherValue]), nil)
    #expect(status == (isDistinct ? errSecSuccess : errSecDuplicateItem))
  }

  @Test(
    "Server, account, protocol, port, path, security domain, and authentication type distinguish internet passwords",
    arguments: [
      (kSecAttrServer as String, "other", true), (kSecAttrAccount as String, "other", true),
      (kSecAttrProtocol as String, kSecAttrProtocolIMAPS as String, true), (kSecAttrPort as String, "993", true),
      (kSecAttrPath as String, "/other", true), (kSecAttrSecurityDomain as String, "other", true),
      (kSecAttrAuthenticationType as String, kSecAttrAuthenticationTypeHTTPDigest as String, true),
      (kSecAttrLabel as String, "other", false), (kSecAttrComment as String, "other", false),
      (kSecAttrDescription as String, "other", false),
    ])
  func internetPasswordPrimaryKey(attribute: String, value: String, isDistinct: Bool) {
    let login: [String: Any] = [
      kSecClass as String: kSecClassInternetPassword, kSecAttrServer as String: "mail.example.org",
      kSecAttrAccount as String: "anna", kSecAttrProtocol as String: kSecAttrProtocolHTTPS,
      kSecAttrPort as String: 443, kSecAttrPath as String: "/", kSecAttrSecurityDomain as String: "example",
      kSecAttrAuthenticationType as String: kSecAttrAuthenticationTypeHTTPBasic,
    ]
    #expect(SecItemAdd(login as CFDictionary, nil) == errSecSuccess)
    #expect(SecItemAdd(login as CFDictionary, nil) == errSecDuplicateItem)
    let status = SecItemAdd(login.merging([attribute: value]) { $1 } as CFDictionary, nil)
    #expect(status == (isDistinct ? errSecSuccess : errSecDuplicateItem))
  }

  @Test("Internet passwords have no generic attribute (-25303)")
  func genericAttributeOfInternetPassword() {
    let login: [CFString: Any] = [kSecClass: kSecClassInternetPassword, kSecAttrGeneric: Data("x".utf8)]
    #expect(SecItemAdd(login as CFDictionary, nil) == errSecNoSuchAttr)
  }
}
