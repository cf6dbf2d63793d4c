import KeychainExamples
import KeychainServices
import Testing

@Test func aLockedPhoneKeepsTheSecretToItself() throws {
  let phone = try KeychainClient.onNewDevice(passcode: "1234")
  DefaultKeychain.using(phone) {
    let passwords = PasswordManager.shared
    passwords.accessMode = .whenUnlocked
    passwords.migrate = false  // this device only: class "aku"
    passwords.register(key: "s3cret", forIdentifier: "mail")
    #expect(passwords.validKey("s3cret", forIdentifier: "mail"))
  }

  try phone.pressSideButton()  // announced now, done in ten seconds
  try phone.lock()  // waits for them

  DefaultKeychain.using(phone) {
    #expect(!PasswordManager.shared.validKey("s3cret", forIdentifier: "mail"))
    #expect(PasswordManager.shared.lastStatus == errSecInteractionNotAllowed)
  }
}
