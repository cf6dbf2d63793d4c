import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
import TestSupport
import Testing

@testable import Backups

@Suite("Changes of a backup's keychain in memory")
struct EditedKeychainTests {
  private static let now = KeychainDate(secondsSinceReferenceDate: 800_000_000)

  /// Opens a backup with its password and, by default, the device key.
  private func edited(_ backup: EditableBackup, withDevice: Bool = true) throws -> (EditedKeychain, UnlockedBackup) {
    let archive = try backup.open()
    func key() throws -> DeviceKey? { withDevice ? try backup.hardware.deviceKey() : nil }
    let derived = try archive.unlock(password: Secret(utf8: EditableBackup.password))
    let opened = try archive.open(with: derived, deviceKey: key(), for: .rewriting)
    let keychain = try EditedKeychain(
      opened, keys: try derived.classKeys(deviceKey: key()), now: Self.now, random: SeededRandomSource(seed: "edit"))
    return (keychain, opened)
  }

  private func code(_ work: () throws -> Void) -> ItemEditError.Code? {
    do {
      try work()
      return nil
    } catch { return (error as? ItemEditError)?.code }
  }

  @Test("An added item gets its dates, identifiers, and digest, as on a device")
  func added() throws {
    let (keychain, _) = try edited(EditableBackup(items: [.password("anna"), .password("bob")]))
    let (item, index) = try keychain.add(.password("carl", secret: "s"))
    #expect(index == 2 && item.creationDate == Self.now && item.modificationDate == Self.now)
    #expect(try item[.digest]?.dataValue == item.digest() && item[.persistentReference]?.dataValue?.count == 16)
    let changed = try keychain.update([0], with: ItemChanges(secrets: [.valueData: SensitiveBytes(copying: [1, 2])]))
    #expect(try changed.count == 1 && changed[0][.digest]?.dataValue == changed[0].digest())
    keychain.remove([1])
    let file = try KeychainBackupFile(parsing: keychain.serialized())
    #expect(file.entries.count == 2 && file.entries.allSatisfy { $0.persistentReference?.count == 20 })
  }

  @Test("A second item with the same primary key is refused, unless the first is marked as deleted")
  func duplicates() throws {
    let deleted = KeychainItem.password("bob", with: [.tombstone: .integer(1), .synchronizable: .integer(0)])
    let (keychain, _) = try edited(EditableBackup(items: [.password("anna"), deleted]))
    #expect(code { _ = try keychain.add(.password("anna")) } == .duplicate)
    #expect(code { _ = try keychain.update([0], with: ItemChanges(attributes: [.account: .string("bob")])) } == nil)
    #expect(code { _ = try keychain.add(.password("bob")) } == .duplicate)
    #expect(code { _ = try keychain.add(.password("anna")) } == nil)
    #expect(try KeychainBackupFile(parsing: keychain.serialized()).entries.count == 2)
  }

  @Test("Items that no backup contains, and items without a proven key, are refused")
  func refusals() throws {
    let (keychain, _) = try edited(EditableBackup(items: [.password("anna")]), withDevice: false)
    #expect(
      code { _ = try keychain.add(.password("x", .whenPasscodeSetThisDeviceOnly)) } == .neverInBackup(.passcodeOnly))
    let bound = KeychainItem.password("x", .whenUnlockedThisDeviceOnly)
    #expect(code { _ = try keychain.add(bound) } == .classKeyMissing(bound.protection?.keyClass ?? .fileNone))
    // The device key is available, but no item proves it.
    let (unproven, _) = try edited(EditableBackup(items: [.password("anna")]))
    #expect(code { _ = try unproven.add(bound) } == .hardwareUnproven(bound.protection?.keyClass ?? .fileNone))
    let (proven, _) = try edited(
      EditableBackup(items: [.password("anna"), .password("b", .whenUnlockedThisDeviceOnly)]))
    #expect(code { _ = try proven.add(bound) } == nil)
  }

  @Test("A keychain file with content that would be lost cannot be edited")
  func unknownContent() throws {
    let xml = try EditableBackup(items: [.password("anna")], keychainInXML: true)
    #expect(code { _ = try edited(xml) } == .unknownContent)
  }
}
