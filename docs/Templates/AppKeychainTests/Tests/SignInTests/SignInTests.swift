import KeyhaulTesting
import Testing

@testable import SignIn

@Test func newPhone() throws {
  let phone = try Phone()
  try phone.run { SignIn.remember() }
  let move = try phone.move(to: .newPhone, backup: .encrypted)
  #expect(move["session token"] == .migrates)
  #expect(move["device id"] == .staysBehind(.deviceBound))
}

@Test func everyMove() throws {
  let phone = try Phone()
  try phone.run { SignIn.remember() }
  let moves = try phone.moves()
  #expect(
    moves["session token"]
      == Fates(
        newPhone: .migrates, newPhoneUnencrypted: .staysBehind(.backupNotEncrypted),
        samePhone: .migrates, samePhoneUnencrypted: .migrates))
}

@Test func wholeKeychain() throws {
  let phone = try Phone()
  try phone.run { SignIn.remember() }
  let move = try phone.move(to: .newPhone, backup: .encrypted)
  #expect(move.migrating.map(\.name) == ["org.example.app/session token"])
  #expect(move.stayingBehind.map(\.name) == ["org.example.app/device id"])
  #expect(move.neverInBackup.isEmpty)
  #expect(move["password"] == .absent)
}

@Test func phoneWithAPast() throws {
  let move = try Phone(fixture: "old-phone").move(to: .newPhone, backup: .encrypted)
  #expect(move["chat.example/anna"] == .migrates)
  #expect(move["chat.example/push token"] == .staysBehind(.deviceBound))
  #expect(move["ssh work laptop"] == .neverInBackup(.hardwareKey))
}
