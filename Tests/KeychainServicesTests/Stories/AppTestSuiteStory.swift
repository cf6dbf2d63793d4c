import Basics
import Foundation
import KeychainServices
import Testing
import VirtualDevice

/// Unit tests of an app, which run on a temporary device.
@Suite("Story 8: the app's test suite", .onAPhone)
struct AppTestSuiteStory {
  let environment: TestEnvironment
  let phone: KeychainClient
  let store = CredentialStore(service: "org.example.notes")
  let anna = CredentialStore.Credentials(account: "anna", token: "t0ken")

  init() throws {
    environment = try TestEnvironment.current
    phone = try DefaultKeychain.client()
  }

  // MARK: The app's unit tests

  @Test("A saved token is found, a second save replaces it, and removing it twice is no error")
  func token() throws {
    #expect(try store.credentials(for: "anna") == nil)
    try store.save(anna)
    #expect(try store.credentials(for: "anna") == anna)
    try store.save(.init(account: "anna", token: "new"))
    #expect(try store.credentials(for: "anna")?.token == "new")
    try store.remove("anna")
    try store.remove("anna")
    #expect(try store.credentials(for: "anna") == nil)
  }

  @Test("All accounts are listed and removed")
  func accounts() throws {
    #expect(try store.accounts() == [])
    for account in ["carl", "anna", "bert"] { try store.save(.init(account: account, token: account)) }
    #expect(try store.accounts() == ["anna", "bert", "carl"])
    store.removeAll()
    #expect(try store.accounts() == [])
  }

  @Test("The device identifier is generated only once")
  func deviceIdentifier() throws {
    let identifier = try store.deviceIdentifier()
    #expect(try store.deviceIdentifier() == identifier)
  }

  @Test("The seed is readable only if the user authenticates")
  func seed() throws {
    phone.authenticationOutcome = .allow
    try store.saveSeed(Data("seed".utf8))
    #expect(try store.seed(reason: "Pay") == Data("seed".utf8))
    for (outcome, status) in [
      (.deny, errSecAuthFailed), (.cancel, errSecUserCanceled), (.unavailable, errSecInteractionNotAllowed),
    ] as [(AuthenticationOutcome, OSStatus)] {
      phone.authenticationOutcome = outcome
      #expect(throws: CredentialStore.Failure.unhandled(status, message(for: status))) {
        _ = try store.seed(reason: "Pay")
      }
    }
    phone.authenticationOutcome = .allow
    let silentContext = LAContext()
    silentContext.interactionNotAllowed = true
    let status = errSecInteractionNotAllowed
    #expect(throws: CredentialStore.Failure.unhandled(status, message(for: status))) {
      _ = try store.seed(reason: "Pay", context: silentContext)
    }
  }

  @Test("A login in the shared group is found by its persistent reference, and a foreign group is refused")
  func login() throws {
    func saveLogin(group: String) -> OSStatus {
      store.saveLogin(server: "example.org", account: "anna", password: "s3cret", group: group)
    }
    #expect(saveLogin(group: "team.shared") == errSecSuccess)
    #expect(saveLogin(group: "team.shared") == errSecDuplicateItem)
    #expect(saveLogin(group: "team.others") == errSecMissingEntitlement)
    let reference = try #require(store.persistentReference(server: "example.org"))
    #expect(store.password(reference: reference) == "s3cret")
  }

  // MARK: Lock, backup, and restore

  /// Saves a token, a seed, and a login on the phone, and lets the app generate its device identifier.
  ///
  /// - Returns: The device identifier.
  private func fillStore() throws -> String {
    phone.authenticationOutcome = .allow
    try store.save(anna)
    try store.saveSeed(Data("seed".utf8))
    let loginStatus = store.saveLogin(
      server: "example.org", account: "anna", password: "s3cret", group: "team.shared")
    #expect(loginStatus == errSecSuccess)
    return try store.deviceIdentifier()
  }

  @Test("On a locked phone, the app finds the token, but neither the login nor the seed")
  func locked() throws {
    _ = try fillStore()
    try phone.lock()
    #expect((try? store.credentials(for: "anna")) == anna, "accessible after the first unlock")
    #expect(store.persistentReference(server: "example.org") == nil, "accessible only while the phone is unlocked")
    #expect((try? store.seed(reason: "Pay")) == nil)
  }

  @Test("After a restore onto another phone, the app finds the token and the login, and generates a new identifier")
  func otherPhone() throws {
    let identifier = try fillStore()
    let backup = try environment.backUp(phone, password: TestEnvironment.password)

    let newPhone = try environment.phone()
    newPhone.authenticationOutcome = .allow
    try environment.restore(backup, password: TestEnvironment.password, onto: newPhone)
    #expect(try newPhone.perform { try store.credentials(for: "anna") } == anna)
    let password = newPhone.perform {
      store.persistentReference(server: "example.org").flatMap(store.password(reference:))
    }
    #expect(password == "s3cret")
    #expect(newPhone.perform { try? store.seed(reason: "Pay") } == nil, "an item with access control is in no backup")
    #expect(try newPhone.perform { try store.deviceIdentifier() } != identifier)
  }

  @Test("After a restore onto the same phone, the app finds the token and the identifier, but not the seed")
  func samePhone() throws {
    let identifier = try fillStore()
    let backup = try environment.backUp(phone, password: TestEnvironment.password)

    try phone.erase()
    try environment.restore(backup, password: TestEnvironment.password, onto: phone)
    #expect(try store.credentials(for: "anna") == anna)
    #expect(try store.deviceIdentifier() == identifier)
    #expect((try? store.seed(reason: "Pay")) == nil)
  }

  private func message(for status: OSStatus) -> String { SecCopyErrorMessageString(status, nil) as String? ?? "" }
}
