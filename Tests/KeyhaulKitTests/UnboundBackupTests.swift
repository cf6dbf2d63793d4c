import Backups
import KeychainFormats
import Testing
import VirtualDevice

@testable import KeyhaulKit

/// Class 5 is for files, 6 to 8 are for migratable items, and 9 to 11 for this-device-only items.
@Suite("Crafted backups with unbound class keys")
struct UnboundBackupTests {
  private static let classes: [ProtectionClass] = TwoPhones.migratable + TwoPhones.deviceOnly
  private static let items = classes.map { KeychainItem.password($0.rawValue, $0) }

  /// Restores a backup without a password, in which the keys of these classes are not bound to a device, and returns the
  /// error.
  private func restoreError(
    unboundClasses: Set<UInt32>, in setup: TestSetup, onto session: DeviceSession
  ) throws -> KeyhaulError? {
    let path = try CraftedBackup(
      setup: setup, password: nil, unboundClasses: unboundClasses, items: Self.items
    ).write()
    let unlocked = try setup.open(path, password: nil, on: session)
    #expect(unlocked.archive.unboundClassKeys?.classes.map(\.rawValue) == unboundClasses.sorted())
    return try keyhaulError { try session.restore(unlocked) }
  }

  @Test("A backup without a password is refused if any class key is not bound to a device")
  func refused() throws {
    let setup = try TestSetup(seed: "downgrade")
    let session = try setup.phone("phone").openTestSession()
    try session.insertUnchanged(.password("mine"))
    let before = try KeychainSnapshot(session).items.map(\.portableContents)
    for classes in (UInt32(5)...11).map({ Set([$0]) }) + [[6, 7, 8], Set(5...11)] {
      let error = try restoreError(unboundClasses: classes, in: setup, onto: session)
      #expect(error?.category == .refused, "\(classes)")
      #expect(error?.reason.contains("anyone can decrypt them, and anyone could have written them") == true)
      #expect(try KeychainSnapshot(session).items.map(\.portableContents) == before)
    }
  }

  @Test("Items with unbound class keys can be decrypted without a device, and bound items cannot")
  func opens() throws {
    let setup = try TestSetup(seed: "downgrade")
    let path = try CraftedBackup(setup: setup, password: nil, unboundClasses: [6, 7, 8], items: Self.items).write()
    let unlocked = try setup.open(path, password: nil, on: nil)
    #expect(unlocked.items.map { $0.item != nil } == [true, true, true, false, false, false])
    let unbound = try #require(unlocked.archive.unboundClassKeys)
    #expect(unbound.blocksRestore)
    #expect(
      unbound.summary == """
        the keys of classes 6, 7 and 8 in its keybag are not wrapped with a device key, although every device \
        does this in a backup without a password
        """)
  }

  @Test("A backup without a password is not opened if a password is given")
  func passwordGiven() throws {
    let setup = try TestSetup(seed: "downgrade")
    let path = try CraftedBackup(setup: setup, password: nil, unboundClasses: [6, 7, 8], items: Self.items).write()
    let error = try keyhaulError { _ = try setup.open(path, password: TestSetup.password, on: nil) }
    #expect(error?.code == .passwordNotNeeded && error?.category == .refused)
    // The password is also refused if every key is bound to the device.
    let plain = try setup.backUp(try setup.phone("phone"), password: nil)
    #expect(
      try keyhaulError { _ = try setup.open(plain, password: TestSetup.password, on: nil) }?.code == .passwordNotNeeded)
  }

  @Test("A backup with a password and unbound this-device-only classes is reported and restored")
  func withPassword() throws {
    let setup = try TestSetup(seed: "downgrade")
    let session = try setup.phone("phone").openTestSession()
    let path = try CraftedBackup(
      setup: setup, password: TestSetup.password, unboundClasses: [6, 7, 8, 9, 11], items: Self.items
    ).write()
    let unlocked = try setup.open(path, password: TestSetup.password, on: session)
    let unbound = try #require(unlocked.archive.unboundClassKeys)
    #expect(unbound.classes.map(\.rawValue) == [9, 11] && !unbound.blocksRestore)
    #expect(unbound.consequence == "with the password, their this-device-only items can be decrypted on any device")
    // The items of all classes except 10.
    #expect(try session.restore(unlocked).summary.migrates == 5)
  }

  @Test("Backups of devices have only bound class keys", arguments: [TestSetup.password, nil])
  func bound(password: String?) throws {
    let setup = try TestSetup(seed: "downgrade")
    let path = try setup.backUp(try setup.phone("phone"), password: password)
    #expect(try setup.open(path, password: password, on: nil).archive.unboundClassKeys == nil)
  }
}
