import Foundation
import KeychainExamples
import KeychainServices
import Testing

@Test func noPasscodeNoItem() throws {
  let phone = try KeychainClient.onNewDevice(passcode: "1234")
  let keys = ProtectedKeys(service: "game", accessible: kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly)
  func play(_ step: () -> OSStatus) -> OSStatus { DefaultKeychain.using(phone, step) }

  #expect(play { keys.addKey(Data("secret".utf8), named: "key") } == errSecSuccess)
  #expect(play { keys.readKey(named: "key").status } == errSecSuccess)

  try phone.removePasscode("1234")
  #expect(play { keys.readKey(named: "key").status } == errSecItemNotFound)
  #expect(play { keys.addKey(Data("secret".utf8), named: "key") } == errSecAuthFailed)

  try phone.setPasscode("1234")
  #expect(play { keys.readKey(named: "key").status } == errSecItemNotFound)  // gone for good
}
