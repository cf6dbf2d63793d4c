import Basics
import Foundation
import KeyhaulTesting
import Testing
import VirtualDevice

@Suite("Moves")
struct MoveTests {
  let phone: Phone

  init() throws {
    phone = try Phone()
    try phone.run { SignIn.remember() }
  }

  @Test("The outcomes of an item's four moves depend on the backup's encryption and on the device key")
  func allFour() throws {
    let moves = try phone.moves()
    #expect(
      moves["session token"]
        == Fates(
          newPhone: .migrates, newPhoneUnencrypted: .staysBehind(.backupNotEncrypted), samePhone: .migrates,
          samePhoneUnencrypted: .migrates))
    #expect(
      moves["device id"]
        == Fates(
          newPhone: .staysBehind(.deviceBound), newPhoneUnencrypted: .staysBehind(.deviceBound), samePhone: .migrates,
          samePhoneUnencrypted: .migrates))
    #expect(moves.all.map(\.items.count) == [2, 2, 2, 2])
  }

  @Test("Restoring a move gives the new phone only the items that migrate, and the old phone keeps its items")
  func restored() throws {
    let newPhone = try phone.move(to: .newPhone, backup: .encrypted).restore()
    try newPhone.run {
      #expect(SignIn.secret(of: "session token") == "t-4711")
      #expect(SignIn.secret(of: "device id") == nil)
    }
    try phone.run { #expect(SignIn.secret(of: "device id") == "d-0815") }
  }

  @Test("A move to the same phone erases it and restores its device-bound items, even from an unencrypted backup")
  func samePhone() throws {
    let restored = try phone.move(to: .samePhone, backup: .unencrypted).restore()
    #expect(restored === phone)
    try restored.lock()
    try restored.unlock()
    try restored.run { #expect(SignIn.secret(of: "device id") == "d-0815") }
  }

  @Test("A move to an existing phone replaces its items")
  func otherPhone() throws {
    let otherPhone = try Phone()
    try otherPhone.run { SignIn.add("old", "o") }
    try phone.move(to: otherPhone, backup: .unencrypted).restore()
    try otherPhone.run { #expect(SignIn.secret(of: "session token") == nil) }
    try phone.move(to: otherPhone, backup: .encrypted).restore()
    try otherPhone.run {
      #expect(SignIn.secret(of: "session token") == "t-4711")
      #expect(SignIn.secret(of: "old") == nil)
    }
  }

  @Test("A move is not carried out if the phone's items have changed since")
  func outdated() throws {
    let move = try phone.move(to: .newPhone, backup: .encrypted)
    try phone.run { SignIn.add("later", "l") }
    #expect(throws: PhoneError.self) { try move.restore() }
    #expect(error { try move.restore() }?.code == .staleMove)
  }

  @Test("A move includes the items that no backup contains, with their reasons")
  func neverInBackup() throws {
    try phone.run {
      SignIn.add("card", "c", kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly)
      SignIn.addGuarded("vault")
    }
    for move in try phone.moves().all {
      #expect(move["card"] == .neverInBackup(.passcodeOnly))
      #expect(move["vault"] == .neverInBackup(.needsAuthentication))
      #expect(Set(move.neverInBackup.map(\.name)) == ["org.example.app/card", "org.example.app/vault"])
    }
  }

  @Test("A move accounts for each item of a fixture", arguments: BundledFixtures.names)
  func everyItem(fixture: String) throws {
    let bytes = try #require(BundledFixtures.bytes(named: fixture))
    let document = try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
    let fixtureItems = try #require(document["items"] as? [[String: Any]])
    let tombstones = fixtureItems.filter { ($0["attributes"] as? [String: Any])?["tomb"] as? Int == 1 }
    let phone = try Phone(fixture: fixture)
    for move in try phone.moves().all {
      let outcomes = [move.migrating, move.stayingBehind, move.neverInBackup, move.unreadable]
      #expect(outcomes.map(\.count).reduce(0, +) == move.items.count)
      #expect(move.items.count == fixtureItems.count - tombstones.count)
      #expect(try move.items.count == phone.itemCount)
    }
  }

  @Test("The move of the bundled old phone has the expected outcomes")
  func oldPhone() throws {
    let move = try Phone(fixture: "old-phone").move(to: .newPhone, backup: .encrypted)
    #expect(
      Set(move.neverInBackup.compactMap(\.fate.reason)) == [
        .passcodeOnly, .hardwareKey, .needsAuthentication, .systemBound,
      ])
    #expect(move["chat.example/push token"] == .staysBehind(.deviceBound))
    #expect(move["chat.example/anna"] == .migrates)
    #expect([move.migrating, move.stayingBehind, move.neverInBackup, move.unreadable].map(\.count) == [14, 4, 4, 0])
    #expect("\(move)".contains(": 14 migrating, 4 staying behind, 4 in no backup\n"))
  }
}

/// Returns the `PhoneError` that the closure throws.
func error<Value>(_ body: () throws -> Value) -> PhoneError? {
  do {
    _ = try body()
    return nil
  } catch { return error as? PhoneError }
}
