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
    _ = try Backup.create(from: phone.device, password: secret, at: path, iterations: 1)
  }

  /// Restores the backup to a phone and returns the number of restored items.
  private func restore(password: String?, onto targetPhone: KeychainClient) throws -> Int {
    let secret: Secret? = if let password { Secret(utf8: password) } else { nil }
    let plan = try Backup(path: path, password: secret).plan(onto: targetPhone.device)
    try plan.restore()
    return plan.arriving.count
  }

  @Test("A backup contains no secret in plain text, with or without a password", arguments: [nil, "horse"])
  func nothingInClear(password: String?) throws {
    try backUp(password: password)
    defer { try? FileManager.default.removeItem(atPath: path) }
    let bytes = try Data(contentsOf: URL(filePath: path))
    #expect(bytes.range(of: Data("plum-orchard-42".utf8)) == nil)
  }

  @Test("A backup without a password can be restored only to its own phone")
  func withoutPassword() throws {
    try backUp(password: nil)
    defer { try? FileManager.default.removeItem(atPath: path) }
    #expect(try restore(password: nil, onto: KeychainClient.onNewDevice(passcode: "0000")) == 0)
    try phone.erase()
    #expect(try restore(password: nil, onto: phone) == 1)
  }

  @Test("A backup with a password can be restored to any phone, but only with that password")
  func withPassword() throws {
    try backUp(password: "horse")
    defer { try? FileManager.default.removeItem(atPath: path) }
    let otherPhone = try KeychainClient.onNewDevice(passcode: "0000")
    #expect(throws: KeyhaulError.self) { try restore(password: "house", onto: otherPhone) }
    #expect(try restore(password: "horse", onto: otherPhone) == 1)
  }

  @Test("A changed password leaves the files unchanged, and the old password no longer works")
  func newPassword() throws {
    try backUp(password: "horse")
    defer { try? FileManager.default.removeItem(atPath: path) }
    let backup = try Backup(path: path, password: Secret(utf8: "horse"))
    let files = try backup.archive.storedFiles()
    let changedBackup = try backup.rekey(from: Secret(utf8: "horse"), to: Secret(utf8: "zebra"))
    #expect(try changedBackup.archive.storedFiles() == files)
    let otherPhone = try KeychainClient.onNewDevice(passcode: "0000")
    #expect(throws: KeyhaulError.self) { try restore(password: "horse", onto: otherPhone) }
    #expect(try restore(password: "zebra", onto: otherPhone) == 1)
  }
}
