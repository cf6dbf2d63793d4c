import Foundation
import Testing

// On Apple systems, Foundation re-exports Security, so many files do not import it. A compiler flag has the same effect here.

@Suite("Code for iOS that imports only Foundation")
struct FoundationOnlyTests {
  @Test("Code that imports only Foundation compiles with the flag that imports Security, and finds its stored item")
  func storedItem() throws {
    // No other test of this process selects a default phone.
    try DefaultKeychain.using(.onNewDevice(passcode: "0000")) { storeAndFind() }
  }

  private func storeAndFind() {
    let query: [CFString: Any] = [
      kSecClass: kSecClassInternetPassword, kSecAttrServer: "mail.example.org", kSecAttrAccount: "anna",
    ]
    var item = query
    item[kSecValueData] = Data("secret".utf8)
    #expect(SecItemAdd(item as CFDictionary, nil) == errSecSuccess)
    defer { SecItemDelete(query as CFDictionary) }
    var search = query
    search[kSecReturnData] = true
    var result: CFTypeRef?
    #expect(SecItemCopyMatching(search as CFDictionary, &result) == errSecSuccess)
    #expect(result as? Data == Data("secret".utf8))
  }
}
