import ArchivedKeychain
import BackupArchive
import DataProtection
import Foundation
import KeychainServices  // on iOS: import Security
import Migration
import Testing
import VirtualDevice

/// The app's own code, as it is written for iOS.
enum Tokens {
  static func save(_ token: String, accessible: CFString) -> OSStatus {
    let item: [String: Any] = [
      kSecClass as String: kSecClassGenericPassword,
      kSecAttrService as String: "org.example.app",
      kSecAttrAccount as String: accessible as String,
      kSecAttrAccessible as String: accessible,
      kSecValueData as String: Data(token.utf8),
    ]
    return SecItemAdd(item as CFDictionary, nil)
  }

  static func all() -> Set<String> {
    let query: [String: Any] = [
      kSecClass as String: kSecClassGenericPassword,
      kSecAttrService as String: "org.example.app",
      kSecMatchLimit as String: kSecMatchLimitAll,
      kSecReturnAttributes as String: true,
    ]
    var result: CFTypeRef?
    guard SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess,
      let items = result as? [[String: Any]]
    else { return [] }
    return Set(items.compactMap { $0[kSecAttrAccount as String] as? String })
  }
}

extension KeychainClient {
  func backUp(to path: String, password: String) throws {
    let session = try device.openSession(.writing, verb: "back up")
    defer { session.end() }
    // Real devices ask for ten million rounds; a test needs one.
    let backup = try BackupExporter.prepare(session, password: Secret(utf8: password), rounds: 1)
    _ = try backup.write(to: .folder(path))
  }

  func restore(_ path: String, password: String) throws {
    let session = try device.openSession(.writing, verb: "restore")
    defer { session.end() }
    let archive = try OpenedArchive(
      BackupArchive.open(.path(path)), password: Secret(utf8: password), deviceKey: try session.deviceKey())
    try Restorer.restore(Restorer.plan(archive, onto: session, policy: .replace), onto: session)
  }
}

@Test func whatANewPhoneGets() throws {
  let phone = try KeychainClient.onNewDevice(passcode: "1234")
  KeychainServices.using(phone) {
    #expect(Tokens.save("moves", accessible: kSecAttrAccessibleWhenUnlocked) == errSecSuccess)
    #expect(Tokens.save("stays", accessible: kSecAttrAccessibleWhenUnlockedThisDeviceOnly) == errSecSuccess)
    #expect(Tokens.all() == ["ak", "aku"])
  }

  let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
  defer { try? FileManager.default.removeItem(at: folder) }
  let path = folder.path(percentEncoded: false)
  try phone.backUp(to: path, password: "correct horse")

  let new = try KeychainClient.onNewDevice(passcode: "0000")
  try new.restore(path, password: "correct horse")
  #expect(KeychainServices.using(new) { Tokens.all() } == ["ak"])
}
