import Basics
import Foundation
import KeychainExamples
import KeychainServices
import Testing

/// The codes -1001 (`badArguments`) and -1002 (`noPassword`) are defined by `KeychainFailure`. The other codes are
/// statuses of the keychain.
@Suite("Story 5: functions for passwords", .onAPhone)
struct PlainPasswordsStory {
  let phone: KeychainClient

  init() throws { phone = try DefaultKeychain.client() }

  /// Returns the code of the error that the closure throws, such as -25300 (errSecItemNotFound), and checks its domain
  /// and description.
  private func errorCode(_ body: () throws -> Void) throws -> Int? {
    do {
      try body()
      return nil
    } catch {
      let error = error as NSError
      #expect(error.domain == KeychainFailure.errorDomain)
      #expect(!error.localizedDescription.isEmpty)
      return error.code
    }
  }

  @Test("A password can be set, read, changed, and deleted")
  func life() throws {
    try PlainPasswords.setPassword("first", service: "mail", account: "anna")
    #expect(try PlainPasswords.password(service: "mail", account: "anna") == "first")
    try PlainPasswords.setPassword("sécond 🔑", service: "mail", account: "anna")
    #expect(try PlainPasswords.password(service: "mail", account: "anna") == "sécond 🔑")
    try PlainPasswords.deletePassword(service: "mail", account: "anna")
    #expect(try errorCode { _ = try PlainPasswords.password(service: "mail", account: "anna") } == -25300)
    #expect(try errorCode { try PlainPasswords.deletePassword(service: "mail", account: "anna") } == -25300)
  }

  @Test(
    "Every function fails with -1001 for an empty service or account",
    arguments: [("", "anna"), ("mail", ""), ("", "")])
  func badArguments(service: String, account: String) throws {
    #expect(try errorCode { try PlainPasswords.setPassword("x", service: service, account: account) } == -1001)
    #expect(try errorCode { _ = try PlainPasswords.password(service: service, account: account) } == -1001)
    #expect(try errorCode { _ = try PlainPasswords.requiredPassword(service: service, account: account) } == -1001)
    #expect(try errorCode { try PlainPasswords.deletePassword(service: service, account: account) } == -1001)
    #expect(try phone.itemCount() == 0)
  }

  @Test("Setting an empty password deletes the item and fails with -1001")
  func emptyPassword() throws {
    try PlainPasswords.setPassword("first", service: "mail", account: "anna")
    #expect(try errorCode { try PlainPasswords.setPassword("", service: "mail", account: "anna") } == -1001)
    #expect(try errorCode { _ = try PlainPasswords.password(service: "mail", account: "anna") } == -25300)
  }

  @Test("An item with an empty secret has no password, and requiring its password fails with -1002")
  func emptySecret() throws {
    let entry: [CFString: Any] = [
      kSecClass: kSecClassGenericPassword, kSecAttrService: "mail", kSecAttrAccount: "anna", kSecValueData: Data(),
    ]
    #expect(SecItemAdd(entry as CFDictionary, nil) == errSecSuccess)
    #expect(try PlainPasswords.password(service: "mail", account: "anna") == nil)
    #expect(try errorCode { _ = try PlainPasswords.requiredPassword(service: "mail", account: "anna") } == -1002)
    #expect(try errorCode { _ = try PlainPasswords.requiredPassword(service: "mail", account: "bert") } == -1002)
  }

  @Test("Other errors have the status of the keychain, such as -25308 on a locked phone")
  func locked() throws {
    try PlainPasswords.setPassword("first", service: "mail", account: "anna")
    try phone.lock()
    #expect(try errorCode { _ = try PlainPasswords.password(service: "mail", account: "anna") } == -25308)
    #expect(try errorCode { _ = try PlainPasswords.requiredPassword(service: "mail", account: "anna") } == -25308)
    #expect(try errorCode { try PlainPasswords.setPassword("x", service: "mail", account: "bert") } == -25308)
  }

  @Test("An app without access groups receives -34018")
  func noEntitlement() throws {
    let appWithoutGroups = KeychainClient(phone.device, as: "stranger")
    let code = try appWithoutGroups.perform {
      try errorCode { try PlainPasswords.setPassword("x", service: "mail", account: "anna") }
    }
    #expect(code == -34018)
  }
}
