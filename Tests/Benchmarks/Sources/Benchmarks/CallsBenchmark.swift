import Foundation
import KeychainServices

/// Measures keychain calls on a nearly empty device in memory, because the test suite of an app makes thousands of them.
///
/// The figures are absolute milliseconds, because Linux has nothing to compare them with.
enum CallsBenchmark {
  private static let repetitions = 400
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
      // The first calls do work that later calls do not repeat.
      _ = try measure()
      return try measure().map { name, milliseconds in
        Figure(name: "\(name) on a device in memory", value: milliseconds, unit: "ms a call", limit: limit)
      }
    }
  }

  /// Returns the milliseconds of a call, by the name of its function.
  private static func measure() throws -> [(name: String, milliseconds: Double)] {
    let item: [CFString: Any] = [
      kSecClass: kSecClassGenericPassword, kSecAttrService: "notes", kSecAttrAccount: "anna",
    ]
    var newItem = item
    newItem[kSecValueData] = Data("t0ken".utf8)
    var search = item
    (search[kSecReturnData], search[kSecReturnAttributes]) = (true, true)
    let changes = [kSecValueData: Data("n3w".utf8)] as CFDictionary
    var totals: [String: Double] = [:]
    func call(_ name: String, _ body: () -> OSStatus) throws {
      var status = errSecSuccess
      totals[name, default: 0] += seconds { status = body() }
      guard status == errSecSuccess else { throw Failure(description: "\(name) returned \(status)") }
    }
    for _ in 0..<repetitions {
      try call("SecItemAdd") { SecItemAdd(newItem as CFDictionary, nil) }
      try call("SecItemCopyMatching") {
        var result: CFTypeRef?
        return SecItemCopyMatching(search as CFDictionary, &result)
      }
      try call("SecItemUpdate") { SecItemUpdate(item as CFDictionary, changes) }
      try call("SecItemDelete") { SecItemDelete(item as CFDictionary) }
    }
    return totals.sorted { $0.key < $1.key }.map { ($0.key, $0.value / Double(repetitions) * 1000) }
  }
}
