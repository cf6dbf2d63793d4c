import Foundation
import KeychainServices

/// Measures keychain calls on a nearly empty device in memory, because the test suite of an app makes thousands of them.
///
/// The figures are milliseconds of this machine, because there is nothing on Linux to compare them with.
enum CallsBenchmark {
  private static let rounds = 400
  #if DEBUG
    private static let limit = 1.0
  #else
    private static let limit = 0.3
  #endif

  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  static func figures() throws -> [Figure] {
    let client = try KeychainClient.onNewDevice(accessGroups: ["team.notes"], passcode: "1234")
    return try DefaultKeychain.using(client) {
      _ = try measured()
      return try measured().map { name, milliseconds in
        Figure(name: "\(name) on a device in memory", value: milliseconds, unit: "ms a call", limit: limit)
      }
    }
  }

  private static func measured() throws -> [(String, Double)] {
    let item: [CFString: Any] = [
      kSecClass: kSecClassGenericPassword, kSecAttrService: "notes", kSecAttrAccount: "anna",
    ]
    var new = item
    new[kSecValueData] = Data("t0ken".utf8)
    var search = item
    (search[kSecReturnData], search[kSecReturnAttributes]) = (true, true)
    let changes = [kSecValueData: Data("n3w".utf8)] as CFDictionary
    var spent: [String: Double] = [:]
    func call(_ name: String, _ body: () -> OSStatus) throws {
      var status = errSecSuccess
      spent[name, default: 0] += seconds { status = body() }
      guard status == errSecSuccess else { throw Failure(description: "\(name) answered \(status)") }
    }
    for _ in 0..<rounds {
      try call("SecItemAdd") { SecItemAdd(new as CFDictionary, nil) }
      try call("SecItemCopyMatching") {
        var found: CFTypeRef?
        return SecItemCopyMatching(search as CFDictionary, &found)
      }
      try call("SecItemUpdate") { SecItemUpdate(item as CFDictionary, changes) }
      try call("SecItemDelete") { SecItemDelete(item as CFDictionary) }
    }
    return spent.sorted { $0.key < $1.key }.map { ($0.key, $0.value / Double(rounds) * 1000) }
  }
}
