import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import DeviceServer

@Suite("Backups by a client")
struct BackupTests {
  private typealias ErrorCode = MemoryClient.ErrorCode

  /// The name of the keychain's payload, the SHA-1 digest of `KeychainDomain-keychain-backup.plist`.
  private static let keychainFileID = "51a4616e576dd33cd2abadfea874eb8ff246bf0e"

  static func password(_ account: String, _ protection: ProtectionClass) -> KeychainItem {
    var item = KeychainItem(kind: .genericPassword)
    item[.account] = .string(account)
    item.protection = protection
    item.secret = SensitiveBytes(copying: Array("hunter2".utf8))
    return item
  }

  private func phone() throws -> ServedPhone {
    try ServedPhone { (session) throws(KeyhaulError) in
      try session.add(Self.password("mail", .afterFirstUnlock))
      try session.add(Self.password("token", .whenUnlockedThisDeviceOnly))
    }
  }

  private func accounts(on phone: ServedPhone) throws -> [String] {
    try phone.served.device.withSession(.reading, verb: "look") { (session) throws(KeyhaulError) in
      try session.find(ItemQuery()).items.compactMap { $0.item[.account]?.stringValue }.sorted()
    }
  }

  private func revision(of phone: ServedPhone) throws -> String {
    try phone.served.device.withSession(.reading, verb: "look") { (session) throws(KeyhaulError) in
      session.record.revision
    }
  }

  private func request(
    _ name: String, _ phone: ServedPhone, _ options: PropertyDictionary = [:]
  ) -> PropertyDictionary {
    var request: PropertyDictionary = [
      "MessageName": .string(name), "TargetIdentifier": .string(phone.served.udid),
    ]
    request.entries += options.entries
    return request
  }

  /// Backs a phone up.
  ///
  /// - Returns: The client's folder.
  private func makeBackup(of phone: ServedPhone) throws -> [String: [UInt8]] {
    let client = MemoryClient()
    #expect(client.run(request("Backup", phone), on: phone.served) == ErrorCode.success)
    return client.files
  }

  private func setPassword(_ password: String, of phone: ServedPhone) -> Int64? {
    let request = request("ChangePassword", phone, ["NewPassword": .string(password)])
    return MemoryClient().run(request, on: phone.served)
  }

  @Test("A backup has exactly its four files, and its status is finished")
  func backup() throws {
    let phone = try phone()
    let files = try makeBackup(of: phone)
    let udid = phone.served.udid
    #expect(
      Set(files.keys) == [
        "\(udid)/Manifest.plist", "\(udid)/Manifest.db", "\(udid)/Status.plist",
        "\(udid)/51/\(Self.keychainFileID)",
      ])
    let status = try BackupStatus(parsing: try #require(files["\(udid)/Status.plist"]))
    #expect(status.isFinished)
    #expect(try BackupManifest(parsing: try #require(files["\(udid)/Manifest.plist"])).isEncrypted == false)
  }

  @Test("The client receives the messages of a backup in the order of a real device")
  func order() throws {
    let phone = try phone()
    let client = MemoryClient()
    _ = client.run(request("Backup", phone), on: phone.served)
    // The messages that create directories are not compared.
    #expect(
      client.messages.filter { $0 != "DLMessageCreateDirectory" } == [
        "DLMessageVersionExchange", "DLMessageDeviceReady", "DLMessageProcessMessage", "DLMessageDownloadFiles",
        "DLMessageGetFreeDiskSpace", "DLMessageUploadFiles", "DLMessageUploadFiles", "DLMessageUploadFiles",
        "DLMessageUploadFiles", "DLMessageMoveItems", "DLMessageMoveItems", "DLMessageUploadFiles",
        "DLMessageRemoveItems", "DLMessageUploadFiles", "DLMessageProcessMessage",
      ])
  }

  @Test("A backup is refused if the client's disk has only the reserved space free")
  func noSpace() throws {
    let phone = try phone()
    // 128 MiB must remain free on the client's disk.
    let client = MemoryClient(freeByteCount: 128 << 20)
    #expect(client.run(request("Backup", phone), on: phone.served) == ErrorCode.noSpace)
    #expect(client.files.isEmpty)
  }

  @Test("A backup of a locked device fails with the code that clients show as locked")
  func locked() throws {
    let phone = try ServedPhone(passcode: "1234") { (session) throws(KeyhaulError) in
      try session.add(Self.password("mail", .whenUnlocked))
    }
    try phone.served.device.withSession(.writing, verb: "restart") { (session) throws(KeyhaulError) in
      try session.restart()
    }
    #expect(MemoryClient().run(request("Backup", phone), on: phone.served) == ErrorCode.deviceLocked)
  }

  @Test("A restore to the same device restores all items, and an interrupted restore changes nothing")
  func restore() throws {
    let phone = try phone()
    let files = try makeBackup(of: phone)
    try phone.served.device.withSession(.writing, verb: "erase") { (session) throws(KeyhaulError) in
      try session.erase()
    }
    let revisionBefore = try revision(of: phone)
    let byteCount = try self.byteCount(ofRestoreOf: files, from: phone)
    // A restore reads the backup's files. A failed restore would read less.
    #expect(byteCount > 10_000)
    // The last bytes only end the conversation, after the restore is committed.
    for count in stride(from: 0, to: byteCount - 200, by: max(1, byteCount / 150)) {
      let client = MemoryClient(files: files, readableByteCount: count)
      #expect(client.run(request("Restore", phone), on: phone.served) == nil)
      #expect(try revision(of: phone) == revisionBefore, "after \(count) bytes")
    }
    #expect(try accounts(on: phone) == [])
    #expect(MemoryClient(files: files).run(request("Restore", phone), on: phone.served) == ErrorCode.success)
    #expect(try accounts(on: phone) == ["mail", "token"])
  }

  /// Returns the number of bytes that a device reads during a restore, measured with another device.
  private func byteCount(ofRestoreOf files: [String: [UInt8]], from phone: ServedPhone) throws -> Int {
    let otherPhone = try self.phone()
    let client = MemoryClient(files: files)
    let source: PropertyDictionary = ["SourceIdentifier": .string(phone.served.udid)]
    _ = client.run(request("Restore", otherPhone, source), on: otherPhone.served)
    return client.readByteCount
  }

  @Test("A restore with a changed byte fails and changes nothing, or restores only items of the backup")
  func changedRestore() throws {
    let phone = try phone()
    let files = try makeBackup(of: phone)
    let unchangedClient = MemoryClient(files: files)
    _ = unchangedClient.run(request("Restore", phone), on: phone.served)
    var lastRevision = try revision(of: phone)
    for offset in Cases.chosen(0..<unchangedClient.readByteCount, quick: 150, seed: 52) {
      let client = MemoryClient(files: files, changedOffset: offset)
      let code = client.run(request("Restore", phone), on: phone.served)
      if code == ErrorCode.success {
        #expect(Set(try accounts(on: phone)).isSubset(of: ["mail", "token"]), "byte \(offset)")
        lastRevision = try revision(of: phone)
      } else {
        #expect(try revision(of: phone) == lastRevision, "byte \(offset)")
      }
    }
    #expect(try accounts(on: phone) == ["mail", "token"])
  }

  @Test("A backup with a password restores all items except this-device-only items to another device")
  func restoreElsewhere() throws {
    let oldPhone = try phone()
    #expect(setPassword("horse", of: oldPhone) == ErrorCode.success)
    #expect(oldPhone.served.isBackupEncrypted)
    let files = try makeBackup(of: oldPhone)
    let newPhone = try ServedPhone()
    let source = PropertyValue.string(oldPhone.served.udid)
    func restore(_ password: String?) -> Int64? {
      var options: PropertyDictionary = [:]
      options["Password"] = password.map { .string($0) }
      return MemoryClient(files: files).run(
        request("Restore", newPhone, ["SourceIdentifier": source, "Options": .dictionary(options)]), on: newPhone.served
      )
    }
    #expect(restore(nil) == ErrorCode.wrongPassword)
    #expect(restore("wrong") == ErrorCode.wrongPassword)
    #expect(try accounts(on: newPhone) == [])
    #expect(!newPhone.served.isBackupEncrypted)
    #expect(restore("horse") == ErrorCode.success)
    #expect(try accounts(on: newPhone) == ["mail"])
    // The backup password is restored too, as on an iPhone.
    #expect(newPhone.served.isBackupEncrypted)
  }

  @Test("A restore of an unfinished, missing or damaged backup is refused and changes nothing")
  func damagedBackups() throws {
    let phone = try phone()
    let files = try makeBackup(of: phone)
    let udid = phone.served.udid
    let revisionBefore = try revision(of: phone)
    var unfinished = files
    var status = try BackupStatus(parsing: try #require(files["\(udid)/Status.plist"]))
    status.snapshotState = "uploading"
    unfinished["\(udid)/Status.plist"] = try status.serialized()
    var truncated = files
    truncated["\(udid)/51/\(Self.keychainFileID)"]?.removeLast(10)
    var withEmptyManifest = files
    withEmptyManifest["\(udid)/Manifest.plist"] = []
    let cases: [(name: String, files: [String: [UInt8]])] = [
      ("unfinished", unfinished), ("truncated", truncated), ("empty manifest", withEmptyManifest), ("missing", [:]),
    ]
    for (name, damagedFiles) in cases {
      #expect(
        MemoryClient(files: damagedFiles).run(request("Restore", phone), on: phone.served) == ErrorCode.noBackup,
        "\(name)")
    }
    #expect(try revision(of: phone) == revisionBefore)
  }

  private func passwordChange(
    of phone: ServedPhone, from old: PropertyValue?, to new: PropertyValue?
  ) -> PropertyDictionary {
    var options: PropertyDictionary = [:]
    options["OldPassword"] = old
    options["NewPassword"] = new
    return request("ChangePassword", phone, options)
  }

  @Test("The backup password can be set, changed and removed, but not with a wrong password")
  func passwords() throws {
    let phone = try phone()
    func change(_ old: String?, to new: String?) -> Int64? {
      let request = passwordChange(of: phone, from: old.map { .string($0) }, to: new.map { .string($0) })
      return MemoryClient().run(request, on: phone.served)
    }
    #expect(change("x", to: "first") == ErrorCode.wrongPassword)
    #expect(change(nil, to: "first") == ErrorCode.success)
    #expect(change(nil, to: "second") == ErrorCode.wrongPassword)
    #expect(change("wrong", to: "second") == ErrorCode.wrongPassword)
    #expect(change("first", to: "second") == ErrorCode.success)
    #expect(change("wrong", to: nil) == ErrorCode.wrongPassword)
    #expect(phone.served.isBackupEncrypted)
    #expect(change("second", to: nil) == ErrorCode.success)
    #expect(!phone.served.isBackupEncrypted)
  }

  @Test("A password that is too long or not text is refused, and the old password stays")
  func invalidPasswords() throws {
    let phone = try phone()
    #expect(setPassword("old", of: phone) == ErrorCode.success)
    // A password may have up to 1,024 bytes.
    for newPassword in [PropertyValue.string(String(repeating: "a", count: 1_025)), .data([0x61])] {
      let request = passwordChange(of: phone, from: .string("old"), to: newPassword)
      #expect(MemoryClient().run(request, on: phone.served) == ErrorCode.other)
      #expect(phone.served.isBackupEncrypted)
    }
  }

  @Test("A change of the password also changes the password of the client's backup")
  func passwordOfExistingBackup() throws {
    let phone = try phone()
    #expect(setPassword("first", of: phone) == ErrorCode.success)
    let client = MemoryClient(files: try makeBackup(of: phone))
    let request = passwordChange(of: phone, from: .string("first"), to: .string("second"))
    #expect(client.run(request, on: phone.served) == ErrorCode.success)

    let folder = try TemporaryDirectory()
    for (path, bytes) in client.files { try folder.write(bytes, to: path) }
    let path = folder.path(phone.served.udid)
    #expect(throws: (any Error).self) { try Backup(path: path, password: Secret(utf8: "first")) }
    #expect(try Backup(path: path, password: Secret(utf8: "second")).items.count == 2)
  }

  @Test("The observers of the backup domain are notified when the password changes")
  func notification() throws {
    let phone = try phone()
    let lines = LineRecorder()
    let observer = NotificationHub.Observer { lines.add($0) }
    observer.observe(NotificationProxy.backupDomainChanged)
    phone.served.notifications.add(observer)
    _ = setPassword("a", of: phone)
    #expect(lines.all == [NotificationProxy.backupDomainChanged])
  }

  @Test("The device reports the content of the client's backup", arguments: ["Info", "List"])
  func content(requestName: String) throws {
    let phone = try phone()
    let client = MemoryClient(files: try makeBackup(of: phone))
    #expect(client.run(request(requestName, phone), on: phone.served) == ErrorCode.success)
    let content = try #require(client.response?["Content"]?.stringValue)
    #expect(content.contains(requestName == "Info" ? "KeychainDomain" : Self.keychainFileID))
  }

  @Test("The device unpacks all files of the client's backup or a single file, and reports a missing file")
  func unpacking() throws {
    let phone = try phone()
    let udid = phone.served.udid
    let files = try makeBackup(of: phone)
    let keychainFile = try #require(files["\(udid)/51/\(Self.keychainFileID)"])

    let unpackingClient = MemoryClient(files: files)
    #expect(unpackingClient.run(request("Unback", phone), on: phone.served) == ErrorCode.success)
    #expect(unpackingClient.files["_unback_/\(udid)/KeychainDomain/keychain-backup.plist"] == keychainFile)

    let extractingClient = MemoryClient(files: files)
    let selection: PropertyDictionary = [
      "DomainName": .string("KeychainDomain"), "RelativePath": .string("keychain-backup.plist"),
    ]
    #expect(extractingClient.run(request("Extract", phone, selection), on: phone.served) == ErrorCode.success)
    #expect(extractingClient.files["keychain-backup.plist"] == keychainFile)

    let missing: PropertyDictionary = ["DomainName": .string("KeychainDomain"), "RelativePath": .string("other")]
    #expect(
      MemoryClient(files: files).run(request("Extract", phone, missing), on: phone.served) == ErrorCode.notFound)
  }

  @Test("Files of an encrypted backup are decrypted and unpacked only with its password")
  func readingEncrypted() throws {
    let phone = try phone()
    #expect(setPassword("horse", of: phone) == ErrorCode.success)
    let files = try makeBackup(of: phone)
    #expect(
      MemoryClient(files: files).run(request("Unback", phone), on: phone.served) == ErrorCode.wrongPassword)
    let client = MemoryClient(files: files)
    let password: PropertyDictionary = ["Password": .string("horse")]
    #expect(client.run(request("Unback", phone, password), on: phone.served) == ErrorCode.success)
    let bytes = try #require(
      client.files["_unback_/\(phone.served.udid)/KeychainDomain/keychain-backup.plist"])
    #expect((try? PropertyListFrame.value(of: bytes))?.dictionaryValue?["genp"] != nil)
  }

  @Test(
    "A file of a backup is unpacked only if its domain and path stay in the client's folder",
    arguments: [
      ("HomeDomain", "Library/a.db", true), ("AppDomain-org.example", "..a", true), ("..", "a", false),
      ("../../x", "a", false), ("../../x", "", false), ("HomeDomain", "", false), ("", "a", false),
      ("HomeDomain", "../a", false), ("HomeDomain", "a/./b", false), ("HomeDomain", "a//b", false),
      ("HomeDomain", "/a", false), ("HomeDomain", "a\\b", false), ("Home\\..", "a", false),
      ("HomeDomain", "a\u{0}", false),
    ])
  func unpackedPaths(domain: String, path: String, isSafe: Bool) {
    #expect((ClientBackup.safeParts(domain: domain, path: path) != nil) == isSafe)
  }

  @Test(
    "An invalid identifier is never used as a path",
    arguments: ["..", "../../../../../../etc/passwd", "a/b", "", "55A16284-5725385955A4A8EF/..", "x\u{0}y"])
  func invalidIdentifiers(text: String) throws {
    let phone = try phone()
    for key in ["SourceIdentifier", "TargetIdentifier"] {
      for name in ["Restore", "Info", "Unback", "Backup"] {
        var values = request(name, phone)
        values[key] = .string(text)
        let client = MemoryClient()
        #expect(client.run(values, on: phone.served) == ErrorCode.other, "\(name)")
        #expect(!client.messages.contains("DLMessageDownloadFiles"))
      }
    }
  }

  @Test(
    "A request that a virtual device does not support is refused",
    arguments: ["EraseDevice", "EnableCloudBackup", "Frobnicate"])
  func refused(name: String) throws {
    let phone = try phone()
    #expect(MemoryClient().run(request(name, phone), on: phone.served) == ErrorCode.other)
    #expect(try accounts(on: phone) == ["mail", "token"])
  }

  @Test("An interrupted restore leaves no staged files in the device's folder")
  func staging() throws {
    let phone = try phone()
    let files = try makeBackup(of: phone)
    // A complete restore reads more than 10,000 bytes.
    _ = MemoryClient(files: files, readableByteCount: 9_000).run(request("Restore", phone), on: phone.served)
    let names = try FileManager.default.contentsOfDirectory(atPath: phone.served.device.directory)
    #expect(!names.contains("staged"))
  }
}
