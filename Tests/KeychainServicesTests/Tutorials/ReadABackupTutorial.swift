import Foundation
import KeychainServices
import KeyhaulKit
import Testing

@Suite("Reading a backup")
struct ReadingABackup {
  let path = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString).path(percentEncoded: false)

  /// Makes a backup of a virtual phone with two items. Your own backup is a directory in `MobileSync/Backup`.
  private func makeBackup() throws {
    let phone = try KeychainClient.onNewDevice()
    DefaultKeychain.using(phone) {
      for (account, accessible) in [
        ("mail", kSecAttrAccessibleWhenUnlocked), ("device id", kSecAttrAccessibleWhenUnlockedThisDeviceOnly),
      ] {
        let item: [String: Any] = [
          kSecClass as String: kSecClassGenericPassword,
          kSecAttrAccount as String: account,
          kSecAttrAccessible as String: accessible,
          kSecValueData as String: Data("hunter2".utf8),
        ]
        #expect(SecItemAdd(item as CFDictionary, nil) == errSecSuccess)
      }
    }
    _ = try Backup.create(from: phone.device, password: Secret(utf8: "horse"), at: path + "/", iterations: 1)
  }

  @Test("The password decrypts the items, and each other item has a reason")
  func items() throws {
    try makeBackup()
    defer { try? FileManager.default.removeItem(atPath: path) }

    let backup = try Backup(path: path, password: Secret(utf8: "horse"))
    #expect(backup.archive.isEncrypted && backup.archive.hasKeychain)

    var accountsAndReasons: [String] = []
    for item in backup.items {
      if let account = item.item?[.account]?.stringValue {
        accountsAndReasons.append(account)
        #expect(item.item?.secret?.count == 7)
      } else {
        accountsAndReasons.append(backup.reason(of: item)?.rawValue ?? "")
      }
    }
    #expect(accountsAndReasons.sorted() == ["device-bound", "mail"])
  }

  @Test("A wrong password is an error with a category and a summary")
  func wrongPassword() throws {
    try makeBackup()
    defer { try? FileManager.default.removeItem(atPath: path) }
    do throws(KeyhaulError) {
      _ = try Backup(path: path, password: Secret(utf8: "house"))
      Issue.record("the wrong password opened the backup")
    } catch {
      #expect(error.category == .wrongPassword)
      #expect(error.summary == "the password is wrong")
    }
  }

  @Test("A file is found in the list and read in chunks, and the backup is verified")
  func files() throws {
    try makeBackup()
    defer { try? FileManager.default.removeItem(atPath: path) }
    let backup = try BackupArchive.open(.path(path))
    let keys = try backup.unlock(password: Secret(utf8: "horse")).classKeys(deviceKey: nil)

    let list = try backup.fileList(with: keys)
    let file = try #require(
      try list.file(domain: KeychainPayload.domain, relativePath: KeychainPayload.relativePath))
    var byteCount = 0
    _ = try backup.readPayload(of: file, with: keys) { chunk in byteCount += chunk.count }
    #expect(byteCount > 0)

    let verification = try Backup(path: path, password: Secret(utf8: "horse")).verify()
    #expect(verification.faults.isEmpty)
    #expect(verification.items?.readable == 1 && verification.items?.deviceBound == 1)
  }
}
