import Basics
import Foundation
import KeyhaulTesting
import Testing
import VirtualDevice

@Suite("A move")
struct MoveTests {
  let phone: Phone

  init() throws {
    phone = try Phone()
    try phone.run { SignIn.remember() }
  }

  @Test("is one of four, and the table of all says what a password and the hardware are good for")
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

  @Test("is carried out by a real restore, and the app reads on the new phone what the move had said")
  func restored() throws {
    let new = try phone.move(to: .newPhone, backup: .encrypted).restore()
    try new.run {
      #expect(SignIn.secret(of: "session token") == "t-4711")
      #expect(SignIn.secret(of: "device id") == nil)
    }
    try phone.run { #expect(SignIn.secret(of: "device id") == "d-0815") }
  }

  @Test("to the same phone erases it and brings back what is bound to it, without a password too")
  func samePhone() throws {
    let again = try phone.move(to: .samePhone, backup: .unencrypted).restore()
    #expect(again === phone)
    try again.lock()
    try again.unlock()
    try again.run { #expect(SignIn.secret(of: "device id") == "d-0815") }
  }

  @Test("to a phone that is there takes the place of what it holds")
  func otherPhone() throws {
    let other = try Phone()
    try other.run { SignIn.add("old", "o") }
    try phone.move(to: other, backup: .unencrypted).restore()
    try other.run { #expect(SignIn.secret(of: "session token") == nil) }
    try phone.move(to: other, backup: .encrypted).restore()
    try other.run {
      #expect(SignIn.secret(of: "session token") == "t-4711")
      #expect(SignIn.secret(of: "old") == nil)
    }
  }

  @Test("is not carried out once the phone holds other items than it was decided for")
  func outdated() throws {
    let move = try phone.move(to: .newPhone, backup: .encrypted)
    try phone.run { SignIn.add("later", "l") }
    #expect(throws: PhoneError.self) { try move.restore() }
    #expect(error { try move.restore() }?.code == .outdatedMove)
  }

  @Test("tells of items that no backup holds, each with its reason")
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

  @Test("accounts for every item that a fixture describes", arguments: BundledFixtures.names)
  func everyItem(fixture: String) throws {
    let bytes = try #require(BundledFixtures.bytes(named: fixture))
    let document = try #require(try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any])
    let described = try #require(document["items"] as? [[String: Any]])
    let tombstones = described.filter { ($0["attributes"] as? [String: Any])?["tomb"] as? Int == 1 }
    let phone = try Phone(fixture: fixture)
    for move in try phone.moves().all {
      let parts = [move.migrating, move.stayingBehind, move.neverInBackup, move.unreadable]
      #expect(parts.map(\.count).reduce(0, +) == move.items.count)
      #expect(move.items.count == described.count - tombstones.count)
      #expect(try move.items.count == phone.itemCount)
    }
  }

  @Test("of the bundled old phone leaves behind and out what its description says")
  func oldPhone() throws {
    let move = try Phone(fixture: "old-phone").move(to: .newPhone, backup: .encrypted)
    #expect(
      Set(move.neverInBackup.compactMap(\.fate.reason)) == [
        .passcodeOnly, .hardwareKey, .needsAuthentication, .systemBound,
      ])
    #expect(move["chat.example/push token"] == .staysBehind(.deviceBound))
    #expect(move["chat.example/anna"] == .migrates)
    #expect([move.migrating, move.stayingBehind, move.neverInBackup, move.unreadable].map(\.count) == [14, 4, 4, 0])
  }
}

/// The error of a phone that the closure throws.
func error<Value>(_ body: () throws -> Value) -> PhoneError? {
  do {
    _ = try body()
    return nil
  } catch { return error as? PhoneError }
}
