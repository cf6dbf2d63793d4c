import Foundation
import KeychainServices  // on iOS: import Security
import KeyhaulKit
import Testing

@Suite("A backup found on a desk")
struct FoundBackup {
  let phone: KeychainClient
  let path = FileManager.default.temporaryDirectory.appending(path: "\(UUID().uuidString).tar")
    .path(percentEncoded: false)

  /// A phone whose keychain has a password that was added without a class.
  init() throws {
    phone = try KeychainClient.onNewDevice(passcode: "1234")
    let item: [String: Any] = [
      kSecClass as String: kSecClassGenericPassword,
      kSecAttrAccount as String: "anna",
      kSecValueData as String: Data("plum-orchard-42".utf8),
    ]
    #expect(DefaultKeychain.using(phone) { SecItemAdd(item as CFDictionary, nil) } == errSecSuccess)
  }

  private func backUp(password: String?) throws {
    let secret: Secret? = if let password { Secret(utf8: password) } else { nil }
    // Real devices use ten million iterations; a test needs one.
    _ = try Backup.make(of: phone.device, password: secret, path: path, rounds: 1)
  }

  /// How many items arrive on a phone.
  private func restore(password: String?, onto other: KeychainClient) throws -> Int {
    let secret: Secret? = if let password { Secret(utf8: password) } else { nil }
    let plan = try Backup(path: path, password: secret).plan(onto: other.device)
    try plan.restore()
    return plan.arriving.count
  }

  @Test("contains no secret in plain text, with or without a password", arguments: [nil, "horse"])
  func nothingInClear(password: String?) throws {
    try backUp(password: password)
    defer { try? FileManager.default.removeItem(atPath: path) }
    let bytes = try Data(contentsOf: URL(filePath: path))
    #expect(bytes.range(of: Data("plum-orchard-42".utf8)) == nil)
  }

  @Test("can be restored without a password only to the phone that made it")
  func withoutPassword() throws {
    try backUp(password: nil)
    defer { try? FileManager.default.removeItem(atPath: path) }
    #expect(try restore(password: nil, onto: KeychainClient.onNewDevice(passcode: "0000")) == 0)
    try phone.erase()
    #expect(try restore(password: nil, onto: phone) == 1)
  }

  @Test("can be restored to any phone with its password, and to none with a wrong one")
  func withPassword() throws {
    try backUp(password: "horse")
    defer { try? FileManager.default.removeItem(atPath: path) }
    let other = try KeychainClient.onNewDevice(passcode: "0000")
    #expect(throws: KeyhaulError.self) { try restore(password: "house", onto: other) }
    #expect(try restore(password: "horse", onto: other) == 1)
  }

  @Test("keeps its files when its password changes, and accepts only the new password")
  func newPassword() throws {
    try backUp(password: "horse")
    defer { try? FileManager.default.removeItem(atPath: path) }
    let before = try Backup(path: path, password: Secret(utf8: "horse"))
    let files = try before.archive.storedFiles()
    let after = try before.rekey(from: Secret(utf8: "horse"), to: Secret(utf8: "zebra"))
    #expect(try after.archive.storedFiles() == files)
    let other = try KeychainClient.onNewDevice(passcode: "0000")
    #expect(throws: KeyhaulError.self) { try restore(password: "horse", onto: other) }
    #expect(try restore(password: "zebra", onto: other) == 1)
  }
}
