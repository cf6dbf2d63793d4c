import Foundation
import KeychainFormats
import TestSupport
import Testing
import VirtualDevice

@testable import Backups
@testable import KeychainCrypto
@testable import KeyhaulKit

/// What must not stand anywhere in a backup.
private struct Needles {
  private(set) var all: [(name: String, bytes: [UInt8])] = []

  mutating func add(_ name: String, _ bytes: [UInt8]) {
    all.append((name, bytes))
    // The same as text, in the two ways a file might spell bytes.
    all.append((name + " in hexadecimal", Array(bytes.hex.utf8)))
    all.append((name + " in base64", Array(Data(bytes).base64EncodedString().utf8.dropLast(3))))
  }

  /// All keys of the needles' owner.
  mutating func add(_ name: String, _ keys: ClassKeys) {
    for keyClass in keys.classes {
      let key = keys.entries[keyClass]?.key?.secret.withBytes { Array($0) }
      if let key { add("\(name)'s key of class \(keyClass.rawValue)", key) }
    }
  }

  func found(in haystack: [UInt8]) -> [String] {
    let data = Data(haystack)
    return all.filter { data.range(of: Data($0.bytes)) != nil }.map(\.name)
  }
}

@Suite("The backup on the desk")
struct BackupOnTheDesk {
  private static let secrets = (0..<20).map { "planted-secret-\($0)-" + String(repeating: "\($0 % 10)", count: 9) }

  private func plantSecrets(_ session: DeviceSession) throws {
    try session.plant(
      Self.secrets.enumerated().map { index, secret in
        let protection = ProtectionClass.allCases[index % ProtectionClass.allCases.count]
        var item = KeychainItem.password("account \(index)", protection).holding(secret)
        item.kind = index % 2 == 0 ? .genericPassword : .internetPassword
        if item.kind == .internetPassword { item[.service] = nil }
        return item
      })
  }

  private static func everyFile(below path: String) throws -> [UInt8] {
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

  @Test("holds no secret and no key in clear, packed or not", arguments: Desk.Packaging.allCases, [nil, Desk.password])
  func nothingInClear(_ packaging: Desk.Packaging, password: String?) throws {
    let desk = try Desk(seed: "desk \(packaging) \(password == nil)")
    let phone = try desk.phone("phone", passcode: "4711-passcode")
    let session = try phone.held()
    try plantSecrets(session)
    let prepared = try BackupExporter.prepare(session, password: secret(password), rounds: 1)
    let (path, destination) = desk.destination("backup", packaging)
    _ = try prepared.write(to: destination)

    var needles = Needles()
    for (index, secret) in Self.secrets.enumerated() { needles.add("secret \(index)", Array(secret.utf8)) }
    needles.add("hardware UID", try Array(Data(contentsOf: URL(fileURLWithPath: phone.directory + "/hardware.uid"))))
    let deviceKey = try session.deviceKey()
    needles.add("device key", try deviceKey.withKey { (key) in key.withBytes { Array($0) } })
    needles.add("the phone", session.classKeys)
    needles.add("the backup", prepared.keys)
    needles.add("passcode", Array("4711-passcode".utf8))
    if let password { needles.add("password", Array(password.utf8)) }
    #expect(needles.all.count > 3 * (20 + 2 + 11 + 11))

    #expect(needles.found(in: try Self.everyFile(below: path)) == [])
    // As stored, whatever it was packed in; and as the list of files and the keychain's file are once decrypted.
    let archive = try BackupArchive.open(.path(path))
    for part in MetadataFile.allCases {
      #expect(needles.found(in: archive.parts[part] ?? []) == [])
      #expect(needles.found(in: try archive.parts[large: part]?.bytes() ?? []) == [])
    }
    #expect(needles.found(in: try #require(try archive.parts.database?.bytes())) == [])
    #expect(needles.found(in: try archive.keychainFile(with: prepared.keys).bytes) == [])
    // The search finds what is there.
    #expect(needles.found(in: Array("x\(Self.secrets[3])x".utf8)) == ["secret 3"])
  }

  @Test("without a password it opens for the phone that made it and for no other")
  func withoutPassword() throws {
    let desk = try Desk(seed: "without")
    let phone = try desk.phone("phone")
    let other = try desk.phone("other")
    let session = try phone.held()
    try session.plant(.password("moves"), .password("stays", .whenUnlockedThisDeviceOnly))
    session.invalidate()
    let path = try desk.backUp(phone, password: nil)
    let onOther = try other.held()
    #expect(try onOther.restore(desk.open(path, password: nil, on: onOther)).isSameDevice == false)
    #expect(try HeldKeychain(onOther).rows.isEmpty)
    // A password that was never set is of another backup.
    let error = try openingError { _ = try desk.open(path, password: "guess", on: onOther) }
    #expect(error?.code == .passwordNotNeeded && error?.category == .refused)
    let onSame = try phone.held()
    try onSame.erase()
    #expect(try onSame.restore(desk.open(path, password: nil, on: onSame)).isSameDevice == true)
    #expect(try HeldKeychain(onSame).item("moves") != nil)
    #expect(try HeldKeychain(onSame).item("stays") != nil)
    // Looking at it without any phone tells which items there are, and nothing in them.
    let nowhere = try desk.open(path, password: nil, on: nil)
    #expect(nowhere.items.map(\.protection) == [.whenUnlocked, .whenUnlockedThisDeviceOnly])
    #expect(nowhere.items.allSatisfy { $0.item == nil && $0.provesHardware == nil })
  }

  @Test("what was added with no class at all migrates")
  func noClass() throws {
    let desk = try Desk(seed: "classless")
    let phone = try desk.phone("phone")
    let session = try phone.held()
    var item = KeychainItem(kind: .genericPassword, attributes: [.account: .string("classless")])
    item.secret = SensitiveBytes(copying: [1])
    try session.add(item)
    #expect(try HeldKeychain(session).item("classless")?.protection == .whenUnlocked)
    session.invalidate()
    let target = try desk.phone("other").held()
    try target.restore(
      desk.open(try desk.backUp(phone, password: Desk.password), password: Desk.password, on: target))
    #expect(try HeldKeychain(target).item("classless")?.secretBytes == [1])

    let old = try desk.phone("old", ios: "4.3.5").held()
    try old.add(item)
    #expect(try HeldKeychain(old).item("classless")?.protection == .always)
  }

  @Test("another password changes the wrapping of the keys and nothing else")
  func newPassword() throws {
    let desk = try Desk(seed: "rewrap")
    let phone = try desk.phone("phone", passcode: "1234")
    let session = try phone.held()
    try plantSecrets(session)
    session.invalidate()
    let path = try desk.backUp(phone, password: Desk.password, as: .directory)
    let before = try desk.open(path, password: Desk.password, on: session.device.held())
    let old = before.archive.keybag
    let new = try BackupKeybag.rewrap(
      old, from: Secret(utf8: Desk.password), to: Secret(utf8: "new"), random: SeededRandomSource(seed: "new"))
    try editPropertyList(path + "/Manifest.plist") { $0["BackupKeyBag"] = .data(new.serialized()) }
    try FileManager.default.removeItem(atPath: path + "/Keyhaul.seal")

    // In the bag: the two salts and the outer wraps. Beside it: nothing.
    for (oldKey, newKey) in zip(old.classKeys, new.classKeys) {
      var restored = newKey
      #expect(newKey.wrappedKey != oldKey.wrappedKey)
      restored.wrappedKey = oldKey.wrappedKey
      #expect(restored == oldKey)
    }
    var header = new
    header.salt = old.salt
    header.dpsl = old.dpsl
    #expect(header.header == old.header)
    let after = try BackupArchive.open(.path(path))
    for part in MetadataFile.allCases where part != .manifest && part != .seal {
      #expect(after.parts[part] == before.archive.parts[part])
      #expect(after.parts[large: part]?.sha256 == before.archive.parts[large: part]?.sha256)
    }
    #expect(after.parts.database != nil && after.parts[large: .keychain] != nil)

    #expect(
      try openingError { _ = try desk.open(path, password: Desk.password, on: nil) }?.category == .wrongPassword)
    let target = try phone.held()
    let reopened = try desk.open(path, password: "new", on: target)
    #expect(reopened.items.map { $0.item?.contents } == before.items.map { $0.item?.contents })
    #expect(reopened.items.allSatisfy { $0.item != nil })
  }

  @Test("the same phone, password and randomness give the same backup")
  func repeatable() throws {
    func backup() throws -> [UInt8] {
      let desk = try Desk(seed: "repeat")
      let phone = try desk.phone("phone")
      let session = try phone.held()
      try session.plant(.password("a"), .password("b", .always))
      session.invalidate()
      return try Array(Data(contentsOf: URL(fileURLWithPath: desk.backUp(phone, password: Desk.password))))
    }
    #expect(try backup() == backup())
  }
}
