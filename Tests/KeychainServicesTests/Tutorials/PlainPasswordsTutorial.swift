import KeychainExamples
import KeychainServices
import Testing

@Test func passwordsWithoutAQuery() throws {
  let phone = try KeychainClient.onNewDevice(passcode: "1234")
  func password() throws -> String? {
    try DefaultKeychain.using(phone) { try PlainPasswords.password(service: "mail", account: "anna") }
  }

  try DefaultKeychain.using(phone) {
    try PlainPasswords.setPassword("s3cret", service: "mail", account: "anna")
  }
  #expect(try password() == "s3cret")

  try phone.lock()
  #expect(throws: KeychainFailure(status: errSecInteractionNotAllowed)) { try password() }

  try phone.unlock(passcode: "1234")
  #expect(throws: KeychainFailure.badArguments) {
    try DefaultKeychain.using(phone) { try PlainPasswords.setPassword("", service: "mail", account: "anna") }
  }
  #expect(throws: KeychainFailure(status: errSecItemNotFound)) { try password() }
}
