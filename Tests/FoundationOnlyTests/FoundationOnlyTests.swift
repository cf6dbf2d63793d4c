import Foundation
import Testing

// On Apple's systems Foundation brings Security along, so that many files never import it. Here the compiler is told to.

@Suite("Code for iOS that imports Foundation alone")
struct FoundationOnlyTests {
  @Test("compiles with the flag that imports Security into every file, and finds what it keeps")
  func keeps() throws {
    // No other test of this process chooses a phone for this one.
    try DefaultKeychain.using(.onNewDevice(passcode: "0000")) { keep() }
  }

  private func keep() {
    let query: [CFString: Any] = [
      kSecClass: kSecClassInternetPassword, kSecAttrServer: "mail.example.org", kSecAttrAccount: "anna",
    ]
    var item = query
    item[kSecValueData] = Data("secret".utf8)
    #expect(SecItemAdd(item as CFDictionary, nil) == errSecSuccess)
    defer { SecItemDelete(query as CFDictionary) }
    var search = query
    search[kSecReturnData] = true
    var found: CFTypeRef?
    #expect(SecItemCopyMatching(search as CFDictionary, &found) == errSecSuccess)
    #expect(found as? Data == Data("secret".utf8))
  }
}
