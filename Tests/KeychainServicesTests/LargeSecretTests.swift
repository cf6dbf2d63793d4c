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

  /// Reads the item's secret as `NSData`, because the bridge to `Data` would copy the bytes one by one.
  private func readSecret() -> (status: OSStatus, bytes: [UInt8]?) {
    var result: CFTypeRef?
    var query = item
    query[kSecReturnData] = true
    let status = SecItemCopyMatching(query as CFDictionary, &result)
    let bytes = (result as? NSData).map { Array(UnsafeRawBufferPointer(start: $0.bytes, count: $0.length)) }
    return (status, bytes)
  }

  @Test("A secret of 64 MiB (8 in a quick run) can be stored, read, and moved to a new phone with an encrypted backup")
  func moved() throws {
    let environment = try TestEnvironment.current
    var newItem = item
    newItem[kSecValueData] = Data(largest)
    #expect(SecItemAdd(newItem as CFDictionary, nil) == errSecSuccess)
    let stored = readSecret()
    #expect(stored.status == errSecSuccess && stored.bytes == largest)

    let backup = try environment.backUp(DefaultKeychain.client(), password: TestEnvironment.password)
    let newPhone = try environment.phone()
    try environment.restore(backup, password: TestEnvironment.password, onto: newPhone)
    try newPhone.unlock()
    let restored = newPhone.perform { readSecret() }
    #expect(restored.status == errSecSuccess && restored.bytes == largest)
  }

  @Test("A secret above the limit is refused, and the item does not change")
  func limit() {
    var newItem = item
    newItem[kSecValueData] = Data("small".utf8)
    #expect(SecItemAdd(newItem as CFDictionary, nil) == errSecSuccess)
    // `NSMutableData`, because the bridge from `Data` would copy the bytes one by one.
    let tooLarge = [kSecValueData: NSMutableData(length: 72 << 20) as Any] as CFDictionary
    #expect(SecItemUpdate(item as CFDictionary, tooLarge) == errSecParam)
    let stored = readSecret()
    #expect(stored.status == errSecSuccess && stored.bytes == Array("small".utf8))
  }
}
