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

  /// Opens a backup's keychain for changes with its password and, by default, the device key.
  private func editedKeychain(_ backup: EditableBackup, withDeviceKey: Bool = true) throws -> EditedKeychain {
    let archive = try backup.open()
    func deviceKey() throws -> DeviceKey? { withDeviceKey ? try backup.hardware.deviceKey() : nil }
    let key = try archive.unlock(password: Secret(utf8: EditableBackup.password))
    let unlocked = try archive.open(with: key, deviceKey: deviceKey(), for: .rewriting)
    return try EditedKeychain(
      unlocked, keys: try key.classKeys(deviceKey: deviceKey()), now: Self.now,
      random: SeededRandomSource(seed: "edit"))
  }

  /// Returns the error code of a change, or `nil` if the change succeeds.
  private func errorCode(_ change: () throws -> Void) -> ItemEditError.Code? {
    do {
      try change()
      return nil
    } catch { return (error as? ItemEditError)?.code }
  }

  @Test("An added item gets its dates, identifiers, and digest, as on a device")
  func added() throws {
    let keychain = try editedKeychain(EditableBackup(items: [.password("anna"), .password("bob")]))
    let (item, index) = try keychain.add(.password("carl", secret: "s"))
    #expect(index == 2 && item.creationDate == Self.now && item.modificationDate == Self.now)
    #expect(try item[.digest]?.dataValue == item.digest() && item[.persistentReference]?.dataValue?.count == 16)
    let changedItems = try keychain.update(
      [0], with: ItemChanges(secrets: [.valueData: SensitiveBytes(copying: [1, 2])]))
    #expect(try changedItems.count == 1 && changedItems[0][.digest]?.dataValue == changedItems[0].digest())
    keychain.remove([1])
    let file = try KeychainBackupFile(parsing: keychain.serialized())
    #expect(file.entries.count == 2 && file.entries.allSatisfy { $0.persistentReference?.count == 20 })
  }

  @Test("A second item with the same primary key is refused, unless the first is marked as deleted")
  func duplicates() throws {
    let deleted = KeychainItem.password("bob", with: [.tombstone: .integer(1), .synchronizable: .integer(0)])
    let keychain = try editedKeychain(EditableBackup(items: [.password("anna"), deleted]))
    #expect(errorCode { _ = try keychain.add(.password("anna")) } == .duplicate)
    #expect(
      errorCode { _ = try keychain.update([0], with: ItemChanges(attributes: [.account: .string("bob")])) } == nil)
    #expect(errorCode { _ = try keychain.add(.password("bob")) } == .duplicate)
    #expect(errorCode { _ = try keychain.add(.password("anna")) } == nil)
    #expect(try KeychainBackupFile(parsing: keychain.serialized()).entries.count == 2)
  }

  @Test("An item that no backup contains is refused")
  func neverInBackup() throws {
    let keychain = try editedKeychain(EditableBackup(items: [.password("anna")]), withDeviceKey: false)
    #expect(
      errorCode { _ = try keychain.add(.password("x", .whenPasscodeSetThisDeviceOnly)) }
        == .neverInBackup(.passcodeOnly))
  }

  @Test("A device-bound item is added only with a device key that another item proves")
  func deviceBoundItem() throws {
    let item = KeychainItem.password("x", .whenUnlockedThisDeviceOnly)
    let keyClass = ProtectionClass.whenUnlockedThisDeviceOnly.keyClass
    let migratable = try EditableBackup(items: [.password("anna")])
    let withoutKey = try editedKeychain(migratable, withDeviceKey: false)
    #expect(errorCode { _ = try withoutKey.add(item) } == .classKeyMissing(keyClass))
    let unproven = try editedKeychain(migratable)
    #expect(errorCode { _ = try unproven.add(item) } == .deviceKeyUnproven(keyClass))
    let proven = try editedKeychain(
      EditableBackup(items: [.password("anna"), .password("b", .whenUnlockedThisDeviceOnly)]))
    #expect(errorCode { _ = try proven.add(item) } == nil)
  }

  @Test("An item of a class that the keybag does not have is refused")
  func missingClass() throws {
    let backup = try EditableBackup(items: [.password("anna")])
    try backup.removeFromKeybag(.afterFirstUnlock)
    let keychain = try editedKeychain(backup)
    #expect(
      errorCode { _ = try keychain.add(.password("x", .afterFirstUnlock)) } == .classKeyUnusable(.afterFirstUnlock))
    #expect(errorCode { _ = try keychain.add(.password("x", .whenUnlocked)) } == nil)
  }

  @Test("A keychain file with content that would be lost cannot be edited")
  func unknownContent() throws {
    let xml = try EditableBackup(items: [.password("anna")], keychainInXML: true)
    #expect(errorCode { _ = try editedKeychain(xml) } == .unknownContent)
  }
}
