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

  try phone.pressSideButton()  // announces a lock in ten seconds
  try phone.lock()  // waits until the phone is locked

  DefaultKeychain.using(phone) {
    #expect(!PasswordManager.shared.validKey("s3cret", forIdentifier: "mail"))
    #expect(PasswordManager.shared.lastStatus == errSecInteractionNotAllowed)
  }
}
