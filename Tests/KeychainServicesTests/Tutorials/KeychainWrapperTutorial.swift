import KeychainExamples
import KeychainServices
import Testing

@Test func accessingOneItemLikeADictionary() throws {
  let phone = try KeychainClient.onNewDevice()
  func wrapper() throws -> KeychainWrapper { try KeychainWrapper(identifier: "Password") }

  // Nothing is stored yet, so the wrapper returns its defaults.
  let first = try DefaultKeychain.using(phone) { try wrapper() }
  #expect(first[kSecAttrAccount] == "Account")
  #expect(!first.isStored)

  // The first value adds the item, and the next ones update it.
  try DefaultKeychain.using(phone) {
    try first.set("anna", for: kSecAttrAccount)
    try first.set("s3cret", for: kSecValueData)
  }
  let second = try DefaultKeychain.using(phone) { try wrapper() }
  #expect(second[kSecValueData] == "s3cret")

  try DefaultKeychain.using(phone) { try second.reset() }
  #expect(second[kSecValueData] == "password")
}
