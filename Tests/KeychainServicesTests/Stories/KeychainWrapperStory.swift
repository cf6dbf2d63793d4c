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

    let again = try KeychainWrapper(identifier: "Password")
    #expect(again.isStored)
    #expect(again[kSecAttrAccount] == "anna")
    #expect(again[kSecValueData] == "s3cret")
    #expect(again[kSecAttrLabel] == "Item label")
  }

  @Test("An unchanged value is not written")
  func unchanged() throws {
    let wrapper = try KeychainWrapper(identifier: "Password")
    try wrapper.set("Account", for: kSecAttrAccount)
    #expect(try phone.itemCount() == 0)
    try wrapper.set("anna", for: kSecAttrAccount)
    let before = try revision()
    try wrapper.set("anna", for: kSecAttrAccount)
    #expect(try revision() == before)
    try wrapper.set("bert", for: kSecAttrAccount)
    #expect(try revision() != before)
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
    let number = try KeychainWrapper(identifier: "Account Number")
    try password.set("s3cret", for: kSecValueData)
    #expect(throws: KeychainFailure(status: errSecDuplicateItem)) { try number.set("42", for: kSecValueData) }
    #expect(number[kSecValueData] == "password", "the value is unchanged")
  }

  @Test("Wrappers of different access groups do not share values")
  func groups() throws {
    let own = try KeychainWrapper(identifier: "Password", accessGroup: "team.notes")
    let shared = try KeychainWrapper(identifier: "Password", accessGroup: "team.shared")
    try own.set("own", for: kSecValueData)
    try shared.set("shared", for: kSecValueData)
    try own.reset()
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

  private func revision() throws -> String {
    try phone.withSession(.reading) { (session) throws(KeyhaulError) in session.record.revision }
  }
}

@Suite("Story 3: logging in to an FTP server", .onAPhone)
struct FTPLoginStory {
  let phone: KeychainClient
  let anna = FTPLogin.Credentials(account: "anna", password: "s3cret")

  init() throws { phone = try DefaultKeychain.client() }

  /// Logs in to a server that accepts one pair of credentials, and counts the dialogs.
  private func logIn(
    accepting right: FTPLogin.Credentials, answering answer: FTPLogin.Answer?
  ) throws -> (outcome: FTPLogin.Outcome, questions: Int) {
    var questions = 0
    let login = FTPLogin(
      server: "ftp.example.org", signIn: { $0 == right },
      ask: { _ in
        questions += 1
        return answer
      })
    return (try login.logIn(), questions)
  }

  private func expect(
    _ result: (outcome: FTPLogin.Outcome, questions: Int), _ outcome: FTPLogin.Outcome, questions: Int,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(result.outcome == outcome, sourceLocation: sourceLocation)
    #expect(result.questions == questions, sourceLocation: sourceLocation)
  }

  @Test("Without stored credentials, the app asks, logs in, and saves them for the next login")
  func saved() throws {
    expect(
      try logIn(accepting: anna, answering: .init(credentials: anna, shouldSave: true)), .afterPrompt, questions: 1)
    #expect(try phone.itemCount() == 1)
    expect(try logIn(accepting: anna, answering: nil), .automatic, questions: 0)
  }

  @Test("Credentials are not stored if the user declines to save them")
  func declined() throws {
    expect(
      try logIn(accepting: anna, answering: .init(credentials: anna, shouldSave: false)), .afterPrompt, questions: 1)
    #expect(try phone.itemCount() == 0)
    expect(try logIn(accepting: anna, answering: nil), .failed, questions: 1)
  }

  @Test("If the server refuses the stored credentials, the app asks again and updates the item")
  func refused() throws {
    expect(
      try logIn(accepting: anna, answering: .init(credentials: anna, shouldSave: true)), .afterPrompt, questions: 1)
    let new = FTPLogin.Credentials(account: "anna", password: "changed")
    expect(try logIn(accepting: new, answering: .init(credentials: new, shouldSave: true)), .afterPrompt, questions: 1)
    #expect(try phone.itemCount() == 1)
    expect(try logIn(accepting: new, answering: nil), .automatic, questions: 0)
  }

  @Test("The stored credentials stay if the user declines to save the new ones")
  func refusedAndDeclined() throws {
    expect(
      try logIn(accepting: anna, answering: .init(credentials: anna, shouldSave: true)), .afterPrompt, questions: 1)
    let new = FTPLogin.Credentials(account: "bert", password: "changed")
    expect(try logIn(accepting: new, answering: .init(credentials: new, shouldSave: false)), .afterPrompt, questions: 1)
    expect(try logIn(accepting: anna, answering: nil), .automatic, questions: 0)
  }

  @Test("Credentials that the server refuses are never stored")
  func wrong() throws {
    let wrong = FTPLogin.Credentials(account: "anna", password: "wrong")
    expect(try logIn(accepting: anna, answering: .init(credentials: wrong, shouldSave: true)), .failed, questions: 1)
    #expect(try phone.itemCount() == 0)
  }
}
