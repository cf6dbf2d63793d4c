import Backups
import KeychainFormats
import Testing
import VirtualDevice

@testable import KeyhaulKit

@Suite("A crafted backup in the place of one with a password")
struct DowngradeTests {
  private static let classes: [ProtectionClass] = TwoPhones.migratable + TwoPhones.deviceOnly
  private static let items = classes.map { KeychainItem.password($0.rawValue, $0) }

  private func refusal(_ unbound: Set<UInt32>, _ desk: Desk, onto session: DeviceSession) throws -> KeyhaulError? {
    let path = try CraftedBackup(desk: desk, password: nil, unbound: unbound, items: Self.items).write()
    let opened = try desk.open(path, password: nil, on: session)
    #expect(opened.archive.unboundClassKeys?.classes.map(\.rawValue) == unbound.sorted())
    return try migrationError { try session.restore(opened) }
  }

  @Test("is refused for every class whose key has no hardware's layer, and nothing of it arrives")
  func refused() throws {
    let desk = try Desk(seed: "downgrade")
    let session = try desk.phone("phone").held()
    try session.plant(.password("mine"))
    let before = try HeldKeychain(session).items.map(\.message)
    for unbound in (UInt32(5)...11).map({ Set([$0]) }) + [[6, 7, 8], Set(5...11)] {
      let error = try refusal(unbound, desk, onto: session)
      #expect(error?.category == .refused, "\(unbound)")
      #expect(error?.reason.contains("anyone can decrypt them, and anyone could have written them") == true)
      #expect(try HeldKeychain(session).items.map(\.message) == before)
    }
  }

  @Test("its items open without any device, which is what is refused; bound ones stay closed")
  func opens() throws {
    let desk = try Desk(seed: "downgrade")
    let path = try CraftedBackup(desk: desk, password: nil, unbound: [6, 7, 8], items: Self.items).write()
    let opened = try desk.open(path, password: nil, on: nil)
    #expect(opened.items.map { $0.item != nil } == [true, true, true, false, false, false])
    let unbound = try #require(opened.archive.unboundClassKeys)
    #expect(unbound.isRefused)
    #expect(
      unbound.fact == """
        the keys of classes 6, 7 and 8 in its keybag are not wrapped with a device's hardware key, although every device \
        does this in a backup without a password
        """)
  }

  @Test("with the password of the backup that is meant it is not even opened")
  func passwordGiven() throws {
    let desk = try Desk(seed: "downgrade")
    let path = try CraftedBackup(desk: desk, password: nil, unbound: [6, 7, 8], items: Self.items).write()
    let error = try openingError { _ = try desk.open(path, password: Desk.password, on: nil) }
    #expect(error?.code == .passwordNotNeeded && error?.category == .refused)
    // Nor where every key is bound as it should be.
    let plain = try desk.backUp(try desk.phone("phone"), password: nil)
    #expect(try openingError { _ = try desk.open(plain, password: Desk.password, on: nil) }?.code == .passwordNotNeeded)
  }

  @Test("a backup with a password whose this-device-only classes are bound to nothing says so, and restores")
  func withPassword() throws {
    let desk = try Desk(seed: "downgrade")
    let session = try desk.phone("phone").held()
    let path = try CraftedBackup(
      desk: desk, password: Desk.password, unbound: [6, 7, 8, 9, 11], items: Self.items
    ).write()
    let opened = try desk.open(path, password: Desk.password, on: session)
    let unbound = try #require(opened.archive.unboundClassKeys)
    #expect(unbound.classes.map(\.rawValue) == [9, 11] && !unbound.isRefused)
    #expect(unbound.meaning == "with the password, their this-device-only items can be decrypted on any device")
    #expect(try session.restore(opened).summary.migrates == 5)
  }

  @Test("what devices write is bound", arguments: [Desk.password, nil])
  func bound(password: String?) throws {
    let desk = try Desk(seed: "downgrade")
    let path = try desk.backUp(try desk.phone("phone"), password: password)
    #expect(try desk.open(path, password: password, on: nil).archive.unboundClassKeys == nil)
  }
}
