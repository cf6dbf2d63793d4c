import Basics
import Foundation
import KeychainExamples
import KeychainServices
import Testing
import VirtualDevice

@Suite("Story 3: the keychain wrapper sample", .onAPhone)
struct KeychainWrapperStory {
  let phone: KeychainClient

  init() throws { phone = try DefaultKeychain.client() }

  @Test("A new wrapper shows its defaults and stores nothing")
  func firstUse() throws {
    let wrapper = try KeychainWrapper(identifier: "Password")
    #expect(wrapper[kSecAttrLabel] == "Item label")
    #expect(wrapper[kSecAttrDescription] == "Item description")
    #expect(wrapper[kSecAttrAccount] == "Account")
    #expect(wrapper[kSecAttrService] == "Service")
    #expect(wrapper[kSecAttrComment] == "Your comment here.")
    #expect(wrapper[kSecValueData] == "password")
    #expect(!wrapper.isStored)
    #expect(try phone.itemCount() == 0)
  }

  @Test("The first value adds the item with all values, and the next one updates it")
  func set() throws {
    let wrapper = try KeychainWrapper(identifier: "Password")
    try wrapper.set("anna", for: kSecAttrAccount)
    #expect(try phone.itemCount() == 1)
    try wrapper.set("s3cret", for: kSecValueData)
    #expect(try phone.itemCount() == 1)

    let newWrapper = try KeychainWrapper(identifier: "Password")
    #expect(newWrapper.isStored)
    #expect(newWrapper[kSecAttrAccount] == "anna")
    #expect(newWrapper[kSecValueData] == "s3cret")
    #expect(newWrapper[kSecAttrLabel] == "Item label")
  }

  @Test("An unchanged value is not written")
  func unchanged() throws {
    let wrapper = try KeychainWrapper(identifier: "Password")
    try wrapper.set("Account", for: kSecAttrAccount)
    #expect(try phone.itemCount() == 0)
    try wrapper.set("anna", for: kSecAttrAccount)
    let revision = try deviceRevision()
    try wrapper.set("anna", for: kSecAttrAccount)
    #expect(try deviceRevision() == revision)
    try wrapper.set("bert", for: kSecAttrAccount)
    #expect(try deviceRevision() != revision)
  }

  @Test("A reset deletes the item and restores the defaults, even without an item")
  func reset() throws {
    let wrapper = try KeychainWrapper(identifier: "Password")
    try wrapper.set("s3cret", for: kSecValueData)
    try wrapper.reset()
    #expect(wrapper[kSecValueData] == "password")
    #expect(!wrapper.isStored)
    #expect(try phone.itemCount() == 0)
    try wrapper.reset()
    try wrapper.set("anna", for: kSecAttrAccount)
    #expect(try phone.itemCount() == 1)
  }

  @Test("Two wrappers with the default account and service are duplicates (-25299)")
  func twoWrappers() throws {
    let password = try KeychainWrapper(identifier: "Password")
    let accountNumber = try KeychainWrapper(identifier: "Account Number")
    try password.set("s3cret", for: kSecValueData)
    #expect(throws: KeychainFailure(status: errSecDuplicateItem)) { try accountNumber.set("42", for: kSecValueData) }
    #expect(accountNumber[kSecValueData] == "password", "the value is unchanged")
  }

  @Test("Wrappers of different access groups do not share values")
  func groups() throws {
    let wrapperOfNotes = try KeychainWrapper(identifier: "Password", accessGroup: "team.notes")
    let sharedWrapper = try KeychainWrapper(identifier: "Password", accessGroup: "team.shared")
    try wrapperOfNotes.set("private", for: kSecValueData)
    try sharedWrapper.set("shared", for: kSecValueData)
    try wrapperOfNotes.reset()
    #expect(try KeychainWrapper(identifier: "Password", accessGroup: "team.shared")[kSecValueData] == "shared")
    #expect(throws: KeychainFailure(status: errSecMissingEntitlement)) {
      _ = try KeychainWrapper(identifier: "Password", accessGroup: "team.others")
    }
  }

  @Test("The wrapper refuses an unknown attribute, and reports the status of a locked phone")
  func refusals() throws {
    let wrapper = try KeychainWrapper(identifier: "Password")
    #expect(wrapper[kSecAttrServer] == nil)
    #expect(throws: KeychainFailure.badArguments) { try wrapper.set("x", for: kSecAttrServer) }
    try wrapper.set("s3cret", for: kSecValueData)
    try phone.lock()
    #expect(throws: KeychainFailure(status: errSecInteractionNotAllowed)) {
      _ = try KeychainWrapper(identifier: "Password")
    }
    #expect(throws: KeychainFailure(status: errSecInteractionNotAllowed)) {
      try wrapper.set("new", for: kSecValueData)
    }
    #expect(wrapper[kSecValueData] == "s3cret")
  }

  /// Returns the revision of the device, which every write changes.
  private func deviceRevision() throws -> String {
    try phone.withSession(.reading) { (session) throws(KeyhaulError) in session.record.revision }
  }
}

@Suite("Story 3: logging in to an FTP server", .onAPhone)
struct FTPLoginStory {
  let phone: KeychainClient
  let anna = FTPLogin.Credentials(account: "anna", password: "s3cret")

  init() throws { phone = try DefaultKeychain.client() }

  private struct LoginResult: Equatable {
    let outcome: FTPLogin.Outcome
    let promptCount: Int
  }

  /// Logs in to a server that accepts one pair of credentials.
  ///
  /// - Parameter answer: The user's input in the dialog, or `nil` if the user cancels it.
  private func logIn(
    accepting acceptedCredentials: FTPLogin.Credentials, answering answer: FTPLogin.Answer?
  ) throws -> LoginResult {
    var promptCount = 0
    let login = FTPLogin(
      server: "ftp.example.org", signIn: { $0 == acceptedCredentials },
      ask: { _ in
        promptCount += 1
        return answer
      })
    let outcome = try login.logIn()
    return LoginResult(outcome: outcome, promptCount: promptCount)
  }

  private let automatic = LoginResult(outcome: .automatic, promptCount: 0)
  private let afterPrompt = LoginResult(outcome: .afterPrompt, promptCount: 1)
  private let failedPrompt = LoginResult(outcome: .failed, promptCount: 1)

  @Test("Without stored credentials, the app asks, logs in, and saves them for the next login")
  func saved() throws {
    #expect(try logIn(accepting: anna, answering: .init(credentials: anna, shouldSave: true)) == afterPrompt)
    #expect(try phone.itemCount() == 1)
    #expect(try logIn(accepting: anna, answering: nil) == automatic)
  }

  @Test("Credentials are not stored if the user declines to save them")
  func declined() throws {
    #expect(try logIn(accepting: anna, answering: .init(credentials: anna, shouldSave: false)) == afterPrompt)
    #expect(try phone.itemCount() == 0)
    #expect(try logIn(accepting: anna, answering: nil) == failedPrompt)
  }

  @Test("If the server refuses the stored credentials, the app asks again and updates the item")
  func refused() throws {
    #expect(try logIn(accepting: anna, answering: .init(credentials: anna, shouldSave: true)) == afterPrompt)
    let changed = FTPLogin.Credentials(account: "anna", password: "changed")
    #expect(try logIn(accepting: changed, answering: .init(credentials: changed, shouldSave: true)) == afterPrompt)
    #expect(try phone.itemCount() == 1)
    #expect(try logIn(accepting: changed, answering: nil) == automatic)
  }

  @Test("The stored credentials stay if the user declines to save the new ones")
  func refusedAndDeclined() throws {
    #expect(try logIn(accepting: anna, answering: .init(credentials: anna, shouldSave: true)) == afterPrompt)
    let bert = FTPLogin.Credentials(account: "bert", password: "changed")
    #expect(try logIn(accepting: bert, answering: .init(credentials: bert, shouldSave: false)) == afterPrompt)
    #expect(try logIn(accepting: anna, answering: nil) == automatic)
  }

  @Test("Credentials that the server refuses are never stored")
  func wrong() throws {
    let wrongPassword = FTPLogin.Credentials(account: "anna", password: "wrong")
    #expect(try logIn(accepting: anna, answering: .init(credentials: wrongPassword, shouldSave: true)) == failedPrompt)
    #expect(try phone.itemCount() == 0)
  }
}
