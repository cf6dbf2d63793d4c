import Basics
import Foundation
import KeychainExamples
import KeychainServices
import Testing

@Suite("Story 1: the password manager class", .onAPhone)
struct PasswordManagerStory {
  let environment: TestEnvironment
  let phone: KeychainClient

  init() throws {
    environment = try TestEnvironment.current
    phone = try DefaultKeychain.client()
  }

  /// Returns a manager that observes the phone's notifications, as that of an app does.
  private func manager(_ accessMode: PasswordManager.AccessMode = .whenUnlocked, migrate: Bool = true)
    -> PasswordManager
  {
    let manager = PasswordManager(listeningTo: phone.notificationCenter)
    manager.accessMode = accessMode
    manager.migrate = migrate
    return manager
  }

  @Test("A registered key is valid, another key is not, and a query without a key reports whether one is registered")
  func registerAndAsk() {
    let manager = manager()
    #expect(!manager.validKey(nil, forIdentifier: "mail"))
    #expect(manager.lastStatus == errSecItemNotFound)

    #expect(manager.register(key: "s3cret", forIdentifier: "mail"))

    #expect(manager.validKey("s3cret", forIdentifier: "mail"))
    #expect(!manager.validKey("guess", forIdentifier: "mail"))
    #expect(manager.validKey(nil, forIdentifier: "mail"))
    #expect(!manager.validKey("s3cret", forIdentifier: nil))
    #expect(manager.lastStatus == errSecParam)
  }

  @Test("Registering again replaces the key and its protection class")
  func registerAgain() throws {
    let manager = manager(.whenUnlocked)
    manager.register(key: "old", forIdentifier: "mail")
    manager.accessMode = .always
    manager.migrate = false
    #expect(manager.register(key: "new", forIdentifier: "mail"))

    #expect(manager.validKey("new", forIdentifier: "mail"))
    #expect(!manager.validKey("old", forIdentifier: "mail"))
    #expect(try attributes(of: "mail")[kSecAttrAccessible as String] as? String == "dku")
    #expect(try phone.itemCount() == 1)
  }

  @Test("The stored item has the identifier as its account and generic attribute, and the app's first access group")
  func storedForm() throws {
    manager().register(key: "s3cret", forIdentifier: "mail")
    let stored = try attributes(of: "mail")
    #expect(stored[kSecAttrAccount as String] as? Data == Data("mail".utf8))
    #expect(stored[kSecAttrGeneric as String] as? Data == Data("mail".utf8))
    #expect(stored[kSecAttrService as String] as? String == PasswordManager.service)
    #expect(stored[kSecAttrAccessGroup as String] as? String == "team.notes")
  }

  @Test("An identifier has one key for each access group")
  func groups() {
    let manager = manager()
    #expect(manager.register(key: "own", forIdentifier: "mail", inGroup: "team.notes"))
    #expect(manager.register(key: "shared", forIdentifier: "mail", inGroup: "team.shared"))

    #expect(manager.validKey("own", forIdentifier: "mail", inGroup: "team.notes"))
    #expect(manager.validKey("shared", forIdentifier: "mail", inGroup: "team.shared"))
    #expect(!manager.register(key: "no", forIdentifier: "mail", inGroup: "team.others"))
    #expect(manager.lastStatus == errSecMissingEntitlement)
    #expect(manager.deleteKey(forIdentifier: "mail", inGroup: "team.notes"))
    #expect(!manager.validKey(nil, forIdentifier: "mail", inGroup: "team.notes"))
    #expect(manager.validKey(nil, forIdentifier: "mail", inGroup: "team.shared"))
  }

  @Test("A deleted key is invalid, and deleting it again is errSecItemNotFound")
  func delete() {
    let manager = manager()
    manager.register(key: "s3cret", forIdentifier: "mail")
    #expect(manager.deleteKey(forIdentifier: "mail"))
    #expect(!manager.validKey("s3cret", forIdentifier: "mail"))
    #expect(!manager.deleteKey(forIdentifier: "mail"))
    #expect(manager.lastStatus == errSecItemNotFound)
  }

  @Test("The last key is cached until another identifier, another access group, or a purge")
  func cache() {
    let manager = manager()
    let eraser = PasswordManager(listeningTo: nil)
    for dropCache in [
      { _ = manager.validKey(nil, forIdentifier: "other") },
      { _ = manager.validKey(nil, forIdentifier: "mail", inGroup: "team.shared") },
      { manager.purge() },
    ] {
      manager.register(key: "s3cret", forIdentifier: "mail")
      #expect(manager.validKey("s3cret", forIdentifier: "mail"))
      #expect(eraser.deleteKey(forIdentifier: "mail"))
      #expect(manager.validKey("s3cret", forIdentifier: "mail"), "served from the cache")
      dropCache()
      #expect(!manager.validKey("s3cret", forIdentifier: "mail"), "read again")
    }
  }

  @Test("Each app has its own shared manager until it is dropped")
  func shared() throws {
    let other = try environment.phone()
    let (first, again) = (PasswordManager.shared, PasswordManager.shared)
    #expect(first === again)
    #expect(other.perform { PasswordManager.shared } !== first)
    PasswordManager.dropShared()
    #expect(PasswordManager.shared !== first)
  }

  // MARK: Lock and restart

  @Test("Ten seconds after the lock notification, only `always` keys are readable")
  func lock() throws {
    let manager = manager(.whenUnlocked)
    manager.register(key: "s3cret", forIdentifier: "mail")
    #expect(manager.validKey("s3cret", forIdentifier: "mail"))
    try phone.pressSideButton()
    environment.clock.advance(by: .seconds(9))
    #expect(
      manager.validKey("s3cret", forIdentifier: "mail"), "the lock is announced, but the keys are still available")
    environment.clock.advance(by: .seconds(1))
    #expect(!manager.validKey("s3cret", forIdentifier: "mail"))
    #expect(manager.lastStatus == -25308)
    try phone.unlock()
    #expect(manager.validKey("s3cret", forIdentifier: "mail"))

    let always = self.manager(.always)
    _ = always.register(key: "s3cret", forIdentifier: "mail")
    try phone.lock()
    #expect(always.validKey("s3cret", forIdentifier: "mail"))
  }

  @Test("Keys that are read between the lock notification and the lock are not cached, but they are after an unlock")
  func announced() throws {
    let manager = manager(.whenUnlocked)
    manager.register(key: "s3cret", forIdentifier: "mail")
    func isCached() -> Bool {
      let eraser = PasswordManager(listeningTo: nil)
      eraser.deleteKey(forIdentifier: "mail")
      defer { eraser.register(key: "s3cret", forIdentifier: "mail") }
      return manager.validKey("s3cret", forIdentifier: "mail")
    }
    #expect(manager.validKey("s3cret", forIdentifier: "mail"))
    #expect(isCached())
    try phone.pressSideButton()
    #expect(manager.validKey("s3cret", forIdentifier: "mail"))
    #expect(!isCached())
    try phone.unlock()
    #expect(manager.validKey("s3cret", forIdentifier: "mail"))
    #expect(isCached())
  }

  @Test(
    "After a restart, only `always` keys are readable, and after the first unlock also `afterFirstUnlock` keys"
  )
  func restart() throws {
    for (mode, readable) in [
      (PasswordManager.AccessMode.whenUnlocked, [false, true, false]), (.afterFirstUnlock, [false, true, true]),
      (.always, [true, true, true]),
    ] {
      let phone = try environment.phone()
      let manager = PasswordManager(listeningTo: phone.notificationCenter)
      manager.accessMode = mode
      phone.perform { _ = manager.register(key: "s3cret", forIdentifier: "mail") }
      var validities: [Bool] = []
      func recordValidity() {
        manager.purge()
        validities.append(phone.perform { manager.validKey("s3cret", forIdentifier: "mail") })
      }
      try phone.restart()
      recordValidity()
      try phone.unlock()
      recordValidity()
      try phone.lock()
      recordValidity()
      #expect(validities == readable, "\(mode)")
    }
  }

  @Test("A manager without notifications returns its cached secret from a locked device")
  func withoutNotifications() throws {
    let manager = PasswordManager(listeningTo: nil)
    manager.register(key: "s3cret", forIdentifier: "mail")
    #expect(manager.validKey("s3cret", forIdentifier: "mail"))
    try phone.lock()
    #expect(manager.validKey("s3cret", forIdentifier: "mail"), "the cache was not purged")
    manager.purge()
    #expect(!manager.validKey("s3cret", forIdentifier: "mail"))
    #expect(manager.lastStatus == errSecInteractionNotAllowed)
  }

  @Test("Moving to the background purges the cache")
  func background() {
    let manager = manager()
    manager.register(key: "s3cret", forIdentifier: "mail")
    #expect(manager.validKey("s3cret", forIdentifier: "mail"))
    PasswordManager(listeningTo: nil).deleteKey(forIdentifier: "mail")
    phone.enterBackground()
    #expect(!manager.validKey("s3cret", forIdentifier: "mail"))
  }

  // MARK: Backup and restore

  @Test("A key that does not migrate is missing on a new phone, and restored to the phone of the backup")
  func stayingKey() throws {
    _ = manager(migrate: false).register(key: "s3cret", forIdentifier: "mail")
    let backup = try environment.backUp(phone, password: TestEnvironment.password)
    let new = try environment.phone()
    try environment.restore(backup, password: TestEnvironment.password, onto: new)
    #expect(!isValid(on: new))

    try phone.erase()
    #expect(!isValid(on: phone))
    try environment.restore(backup, password: TestEnvironment.password, onto: phone)
    #expect(isValid(on: phone))
  }

  @Test("A key that migrates is valid on both phones")
  func movingKey() throws {
    _ = manager(migrate: true).register(key: "s3cret", forIdentifier: "mail")
    let backup = try environment.backUp(phone, password: TestEnvironment.password)
    let new = try environment.phone()
    try environment.restore(backup, password: TestEnvironment.password, onto: new)
    #expect(isValid(on: new))
    #expect(isValid(on: phone))
  }

  /// The two settings, the protection class they select, and the validity of the key after each of the four restores.
  struct Combination: Sendable, CustomTestStringConvertible {
    let accessMode: PasswordManager.AccessMode
    let migrate: Bool
    let protection: String
    /// The validity on the same phone without and with a password, then on another phone without and with one.
    let restored: [Bool]

    var testDescription: String { protection }
  }

  static let combinations = [
    Combination(accessMode: .whenUnlocked, migrate: true, protection: "ak", restored: [true, true, false, true]),
    Combination(accessMode: .whenUnlocked, migrate: false, protection: "aku", restored: [true, true, false, false]),
    Combination(accessMode: .afterFirstUnlock, migrate: true, protection: "ck", restored: [true, true, false, true]),
    Combination(
      accessMode: .afterFirstUnlock, migrate: false, protection: "cku", restored: [true, true, false, false]),
    Combination(accessMode: .always, migrate: true, protection: "dk", restored: [true, true, false, true]),
    Combination(accessMode: .always, migrate: false, protection: "dku", restored: [true, true, false, false]),
  ]

  @Test(
    "Each of the six combinations has the expected result for each of the four restores", arguments: combinations,
    [0, 1, 2, 3])
  func table(combination: Combination, restore: Int) throws {
    let password = restore % 2 == 1 ? TestEnvironment.password : nil
    let isSamePhone = restore < 2
    let manager = manager(combination.accessMode, migrate: combination.migrate)
    #expect(manager.register(key: "s3cret", forIdentifier: "mail"))
    #expect(try attributes(of: "mail")[kSecAttrAccessible as String] as? String == combination.protection)
    let backup = try environment.backUp(phone, password: password)
    let target = isSamePhone ? phone : try environment.phone()
    try target.erase()

    try environment.restore(backup, password: password, onto: target)

    #expect(isValid(on: target) == combination.restored[restore])
    if combination.restored[restore] {
      let stored = try target.perform { try attributes(of: "mail") }
      #expect(stored[kSecAttrAccessible as String] as? String == combination.protection)
    }
  }

  private func isValid(on phone: KeychainClient) -> Bool {
    phone.perform { PasswordManager(listeningTo: nil).validKey("s3cret", forIdentifier: "mail") }
  }

  private func attributes(of identifier: String) throws -> [String: Any] {
    let query: [String: Any] = [
      kSecClass as String: kSecClassGenericPassword, kSecAttrGeneric as String: Data(identifier.utf8),
      kSecReturnAttributes as String: true,
    ]
    var result: AnyObject?
    try #require(SecItemCopyMatching(query as CFDictionary, &result) == errSecSuccess)
    return try #require(result as? [String: Any])
  }
}
