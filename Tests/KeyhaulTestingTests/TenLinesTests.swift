import KeyhaulTesting
import Testing

@Test func newPhone() throws {
  let phone = try Phone()
  try phone.run { SignIn.remember() }
  let move = try phone.move(to: .newPhone, backup: .encrypted)
  #expect(move["session token"] == .migrates)
  #expect(move["device id"] == .staysBehind(.deviceBound))
}
