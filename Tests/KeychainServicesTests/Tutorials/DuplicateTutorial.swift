import Foundation
import KeychainServices
import Testing

@Test func twoItemsThatAreOne() throws {
  func password(_ attributes: [CFString: Any]) -> CFDictionary {
    attributes.merging([kSecClass: kSecClassGenericPassword]) { $1 } as CFDictionary
  }

  try DefaultKeychain.using(KeychainClient.onNewDevice()) {
    #expect(SecItemAdd(password([kSecAttrGeneric: Data("work".utf8)]), nil) == errSecSuccess)
    #expect(SecItemAdd(password([kSecAttrGeneric: Data("home".utf8)]), nil) == errSecDuplicateItem)
    #expect(SecItemCopyMatching(password([kSecAttrGeneric: Data("home".utf8)]), nil) == errSecItemNotFound)

    let home = password([kSecAttrGeneric: Data("home".utf8), kSecAttrAccount: "home"])
    #expect(SecItemAdd(home, nil) == errSecSuccess)
  }
}
