import Basics
import Foundation
import KeychainServices
import TestSupport
import Testing

/// Some apps store a small database or pictures in an item. Apple documents no limit. Keyhaul's limit is 72 MiB for the
/// encrypted item.
@Suite("Items with very large secrets", .onAPhone)
struct LargeSecretTests {
  let largest = [UInt8](repeating: 0x5A, count: Cases.count(64, quick: 8) << 20)

  let item: [CFString: Any] = [
    kSecClass: kSecClassGenericPassword, kSecAttrService: "gallery", kSecAttrAccount: "anna",
  ]

  /// Returns the status and the bytes. The bridge to `Data` would copy them one by one.
  private func secret() -> (OSStatus, [UInt8]?) {
    var found: CFTypeRef?
    var query = item
    query[kSecReturnData] = true
    let status = SecItemCopyMatching(query as CFDictionary, &found)
    return (status, (found as? NSData).map { Array(UnsafeRawBufferPointer(start: $0.bytes, count: $0.length)) })
  }

  @Test("A secret of 64 MiB (8 in a quick run) can be stored, read, and moved to a new phone with an encrypted backup")
  func moved() throws {
    let environment = try TestEnvironment.current
    var new = item
    new[kSecValueData] = Data(largest)
    #expect(SecItemAdd(new as CFDictionary, nil) == errSecSuccess)
    #expect(secret() == (errSecSuccess, largest))

    let backup = try environment.backUp(DefaultKeychain.client(), password: TestEnvironment.password)
    let next = try environment.phone()
    try environment.restore(backup, password: TestEnvironment.password, onto: next)
    try next.unlock()
    #expect(next.perform { secret() } == (errSecSuccess, largest))
  }

  @Test("A secret above the limit is refused, and the item does not change")
  func limit() {
    var new = item
    new[kSecValueData] = Data("small".utf8)
    #expect(SecItemAdd(new as CFDictionary, nil) == errSecSuccess)
    let tooLarge = [kSecValueData: Data(repeating: 1, count: 72 << 20)] as CFDictionary
    #expect(SecItemUpdate(item as CFDictionary, tooLarge) == errSecParam)
    #expect(secret() == (errSecSuccess, Array("small".utf8)))
  }
}
