import Foundation
import KeychainFormats
import TestSupport
import Testing
import VirtualDevice

@testable import Backups
@testable import KeychainCrypto
@testable import KeyhaulKit

/// Bytes that no part of a backup may contain.
private struct ForbiddenBytes {
  private(set) var all: [(name: String, bytes: [UInt8])] = []

  mutating func add(_ name: String, _ bytes: [UInt8]) {
    all.append((name, bytes))
    all.append((name + " in hexadecimal", Array(bytes.hex.utf8)))
    // The last characters in base64 depend on the bytes that follow.
    all.append((name + " in base64", Array(Data(bytes).base64EncodedString().utf8.dropLast(3))))
  }

  /// Adds all class keys.
  mutating func add(_ name: String, _ keys: ClassKeys) {
    for keyClass in keys.classes {
      let key = keys.entries[keyClass]?.key?.secret.withBytes { Array($0) }
      if let key { add("\(name)'s key of class \(keyClass.rawValue)", key) }
    }
  }

  /// Returns the names of all bytes that occur in the haystack.
  func matches(in haystack: [UInt8]) -> [String] {
    let data = Data(haystack)
    return all.filter { data.range(of: Data($0.bytes)) != nil }.map(\.name)
  }
}

@Suite("Contents of backups")
struct BackupContentsTests {
  private static let secrets = (0..<20).map { "planted-secret-\($0)-" + String(repeating: "\($0 % 10)", count: 9) }

  private func plantSecrets(_ session: DeviceSession) throws {
    try session.insertUnchanged(
      Self.secrets.enumerated().map { index, secret in
        let protection = ProtectionClass.allCases[index % ProtectionClass.allCases.count]
        var item = KeychainItem.password("account \(index)", protection).with(secret: secret)
        item.kind = index % 2 == 0 ? .genericPassword : .internetPassword
        if item.kind == .internetPassword { item[.service] = nil }
        return item
      })
  }

  /// Returns the bytes of a file, or the names and bytes of all files in a folder.
  private static func bytes(at path: String) throws -> [UInt8] {
    var isDirectory: ObjCBool = false
    _ = FileManager.default.fileExists(atPath: path, isDirectory: &isDirectory)
    guard isDirectory.boolValue else { return try Array(Data(contentsOf: URL(fileURLWithPath: path))) }
    return try FileManager.default.subpathsOfDirectory(atPath: path).sorted().reduce(into: []) { bytes, name in
      bytes += Array(name.utf8)
      let url = URL(fileURLWithPath: path + "/" + name)
      if try url.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile == true {
        bytes += try Data(contentsOf: url)
      }
    }
  }

  @Test(
    "A backup contains no secret and no key in plain text, in any packaging", arguments: TestSetup.Packaging.allCases,
    [nil, TestSetup.password])
  func noPlaintext(_ packaging: TestSetup.Packaging, password: String?) throws {
    let setup = try TestSetup(seed: "desk \(packaging) \(password == nil)")
    let phone = try setup.phone("phone", passcode: "4711-passcode")
    let session = try phone.openTestSession()
    try plantSecrets(session)
    let prepared = try BackupExporter.prepare(session, password: secret(password), rounds: 1)
    let (path, destination) = setup.destination("backup", packaging)
    _ = try prepared.write(to: destination)

    var forbidden = ForbiddenBytes()
    for (index, secret) in Self.secrets.enumerated() { forbidden.add("secret \(index)", Array(secret.utf8)) }
    forbidden.add("hardware UID", try Array(Data(contentsOf: URL(fileURLWithPath: phone.directory + "/hardware.uid"))))
    let deviceKey = try session.deviceKey()
    forbidden.add("device key", try deviceKey.withKey { (key) in key.withBytes { Array($0) } })
    forbidden.add("the phone", session.classKeys)
    forbidden.add("the backup", prepared.keys)
    forbidden.add("passcode", Array("4711-passcode".utf8))
    if let password { forbidden.add("password", Array(password.utf8)) }
    // 20 secrets, 2 keys of the device, and 11 class keys each of the phone and the backup, in 3 encodings.
    #expect(forbidden.all.count > 3 * (20 + 2 + 11 + 11))

    #expect(forbidden.matches(in: try Self.bytes(at: path)) == [])
    // The stored bytes, and the decrypted manifest and keychain file.
    let archive = try BackupArchive.open(.path(path))
    for part in MetadataFile.allCases {
      #expect(forbidden.matches(in: archive.parts[part] ?? []) == [])
      #expect(forbidden.matches(in: try archive.parts[large: part]?.bytes() ?? []) == [])
    }
    #expect(forbidden.matches(in: try #require(try archive.parts.database?.bytes())) == [])
    #expect(forbidden.matches(in: try archive.keychainFile(with: prepared.keys).bytes) == [])
    // The search works: it finds bytes that are present.
    #expect(forbidden.matches(in: Array("x\(Self.secrets[3])x".utf8)) == ["secret 3"])
  }

  @Test("A backup without a password can be decrypted only on its source device")
  func withoutPassword() throws {
    let setup = try TestSetup(seed: "without")
    let phone = try setup.phone("phone")
    let other = try setup.phone("other")
    let session = try phone.openTestSession()
    try session.insertUnchanged(.password("moves"), .password("stays", .whenUnlockedThisDeviceOnly))
    session.invalidate()
    let path = try setup.backUp(phone, password: nil)
    let otherSession = try other.openTestSession()
    #expect(try otherSession.restore(setup.open(path, password: nil, on: otherSession)).isSameDevice == false)
    #expect(try KeychainSnapshot(otherSession).rows.isEmpty)
    // A backup without a password does not accept one.
    let error = try keyhaulError { _ = try setup.open(path, password: "guess", on: otherSession) }
    #expect(error?.code == .passwordNotNeeded && error?.category == .refused)
    let sameSession = try phone.openTestSession()
    try sameSession.erase()
    #expect(try sameSession.restore(setup.open(path, password: nil, on: sameSession)).isSameDevice == true)
    #expect(try KeychainSnapshot(sameSession).item("moves") != nil)
    #expect(try KeychainSnapshot(sameSession).item("stays") != nil)
    // Without a phone, the kinds and classes of items are known, but not their contents.
    let withoutDevice = try setup.open(path, password: nil, on: nil)
    #expect(withoutDevice.items.map(\.protection) == [.whenUnlocked, .whenUnlockedThisDeviceOnly])
    #expect(withoutDevice.items.allSatisfy { $0.item == nil && $0.provesDeviceKey == nil })
  }

  @Test("An item added without a class is migratable: \"when unlocked\", or \"always\" on iOS 4")
  func noClass() throws {
    let setup = try TestSetup(seed: "classless")
    let phone = try setup.phone("phone")
    let session = try phone.openTestSession()
    var item = KeychainItem(kind: .genericPassword, attributes: [.account: .string("classless")])
    item.secret = SensitiveBytes(copying: [1])
    try session.add(item)
    #expect(try KeychainSnapshot(session).item("classless")?.protection == .whenUnlocked)
    session.invalidate()
    let target = try setup.phone("other").openTestSession()
    try target.restore(
      setup.open(try setup.backUp(phone, password: TestSetup.password), password: TestSetup.password, on: target))
    #expect(try KeychainSnapshot(target).item("classless")?.secretBytes == [1])

    let oldSession = try setup.phone("old", ios: "4.3.5").openTestSession()
    try oldSession.add(item)
    #expect(try KeychainSnapshot(oldSession).item("classless")?.protection == .always)
  }

  @Test("A new password changes only the key wraps")
  func newPassword() throws {
    let setup = try TestSetup(seed: "rewrap")
    let phone = try setup.phone("phone", passcode: "1234")
    let session = try phone.openTestSession()
    try plantSecrets(session)
    session.invalidate()
    let path = try setup.backUp(phone, password: TestSetup.password, as: .directory)
    let before = try setup.open(path, password: TestSetup.password, on: session.device.openTestSession())
    let oldKeybag = before.archive.keybag
    let newKeybag = try BackupKeybag.rewrap(
      oldKeybag, from: Secret(utf8: TestSetup.password), to: Secret(utf8: "new"),
      random: SeededRandomSource(seed: "new"))
    try editPropertyList(path + "/Manifest.plist") { $0["BackupKeyBag"] = .data(newKeybag.serialized()) }
    try FileManager.default.removeItem(atPath: path + "/Keyhaul.seal")

    // Only the two salts and the outer key wraps differ.
    for (oldKey, newKey) in zip(oldKeybag.classKeys, newKeybag.classKeys) {
      var restored = newKey
      #expect(newKey.wrappedKey != oldKey.wrappedKey)
      restored.wrappedKey = oldKey.wrappedKey
      #expect(restored == oldKey)
    }
    var header = newKeybag
    header.salt = oldKeybag.salt
    header.dpsl = oldKeybag.dpsl
    #expect(header.header == oldKeybag.header)
    let after = try BackupArchive.open(.path(path))
    for part in MetadataFile.allCases where part != .manifest && part != .seal {
      #expect(after.parts[part] == before.archive.parts[part])
      #expect(after.parts[large: part]?.sha256 == before.archive.parts[large: part]?.sha256)
    }
    #expect(after.parts.database != nil && after.parts[large: .keychain] != nil)

    #expect(
      try keyhaulError { _ = try setup.open(path, password: TestSetup.password, on: nil) }?.category == .wrongPassword)
    let target = try phone.openTestSession()
    let reopened = try setup.open(path, password: "new", on: target)
    #expect(reopened.items.map { $0.item?.contents } == before.items.map { $0.item?.contents })
    #expect(reopened.items.allSatisfy { $0.item != nil })
  }

  @Test("The same phone, password and random numbers give the same backup")
  func repeatable() throws {
    func backup() throws -> [UInt8] {
      let setup = try TestSetup(seed: "repeat")
      let phone = try setup.phone("phone")
      let session = try phone.openTestSession()
      try session.insertUnchanged(.password("a"), .password("b", .always))
      session.invalidate()
      return try Array(Data(contentsOf: URL(fileURLWithPath: setup.backUp(phone, password: TestSetup.password))))
    }
    #expect(try backup() == backup())
  }
}
