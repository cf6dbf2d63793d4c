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

  /// Returns a manager that observes the phone's notifications, as a manager in an app does.
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
    // kSecAttrAccessibleAlwaysThisDeviceOnly
    #expect(try attributes(of: "mail")[kSecAttrAccessible as String] as? String == "dku")
    #expect(try phone.itemCount() == 1)
  }

  @Test("The stored item has the identifier as its account and generic attribute, and the app's first access group")
  func storedForm() throws {
    manager().register(key: "s3cret", forIdentifier: "mail")
    let storedAttributes = try attributes(of: "mail")
    #expect(storedAttributes[kSecAttrAccount as String] as? Data == Data("mail".utf8))
    #expect(storedAttributes[kSecAttrGeneric as String] as? Data == Data("mail".utf8))
    #expect(storedAttributes[kSecAttrService as String] as? String == PasswordManager.service)
    #expect(storedAttributes[kSecAttrAccessGroup as String] as? String == "team.notes")
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

  @Test("The last key is cached until a query for another identifier or access group, or a purge")
  func cache() {
    let manager = manager()
    // Deletes the item without changing the cache of the other manager.
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
    let otherPhone = try environment.phone()
    let manager = PasswordManager.shared
    #expect(PasswordManager.shared === manager)
    #expect(otherPhone.perform { PasswordManager.shared } !== manager)
    PasswordManager.dropShared()
    #expect(PasswordManager.shared !== manager)
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
    #expect(manager.lastStatus == errSecInteractionNotAllowed)
    try phone.unlock()
    #expect(manager.validKey("s3cret", forIdentifier: "mail"))

    let alwaysManager = self.manager(.always)
    _ = alwaysManager.register(key: "s3cret", forIdentifier: "mail")
    try phone.lock()
    #expect(alwaysManager.validKey("s3cret", forIdentifier: "mail"))
  }

  @Test(
    "Keys that are read between the lock notification and the lock are not cached, and keys read after an unlock are")
  func announced() throws {
    let manager = manager(.whenUnlocked)
    manager.register(key: "s3cret", forIdentifier: "mail")
    // A cached key is still valid after another manager has deleted its item. The item is then added again.
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
    // The validities before the first unlock, while the phone is unlocked, and after it is locked again.
    for (mode, expectedValidities) in [
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
      #expect(validities == expectedValidities, "\(mode)")
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

  @Test("A key that does not migrate is missing on a new phone, and is restored to the phone that was backed up")
  func stayingKey() throws {
    _ = manager(migrate: false).register(key: "s3cret", forIdentifier: "mail")
    let backup = try environment.backUp(phone, password: TestEnvironment.password)
    let newPhone = try environment.phone()
    try environment.restore(backup, password: TestEnvironment.password, onto: newPhone)
    #expect(!isValid(on: newPhone))

    try phone.erase()
    #expect(!isValid(on: phone))
    try environment.restore(backup, password: TestEnvironment.password, onto: phone)
    #expect(isValid(on: phone))
  }

  @Test("A key that migrates is valid on both phones")
  func movingKey() throws {
    _ = manager(migrate: true).register(key: "s3cret", forIdentifier: "mail")
    let backup = try environment.backUp(phone, password: TestEnvironment.password)
    let newPhone = try environment.phone()
    try environment.restore(backup, password: TestEnvironment.password, onto: newPhone)
    #expect(isValid(on: newPhone))
    #expect(isValid(on: phone))
  }

  enum RestoreMethod: CaseIterable {
    case samePhoneWithoutPassword, samePhoneWithPassword, otherPhoneWithoutPassword, otherPhoneWithPassword

    var isSamePhone: Bool { self == .samePhoneWithoutPassword || self == .samePhoneWithPassword }
    var hasPassword: Bool { self == .samePhoneWithPassword || self == .otherPhoneWithPassword }
  }

  /// The two settings of a key, the protection class that they select, and the restores after which the key is valid.
  struct Combination: Sendable, CustomTestStringConvertible {
    let accessMode: PasswordManager.AccessMode
    let migrate: Bool
    /// The value of `kSecAttrAccessible`.
    let protection: String
    let validAfter: Set<RestoreMethod>

    var testDescription: String { protection }
  }

  private static let samePhone: Set<RestoreMethod> = [.samePhoneWithoutPassword, .samePhoneWithPassword]
  private static let samePhoneOrWithPassword = samePhone.union([.otherPhoneWithPassword])

  static let combinations = [
    Combination(accessMode: .whenUnlocked, migrate: true, protection: "ak", validAfter: samePhoneOrWithPassword),
    Combination(accessMode: .whenUnlocked, migrate: false, protection: "aku", validAfter: samePhone),
    Combination(accessMode: .afterFirstUnlock, migrate: true, protection: "ck", validAfter: samePhoneOrWithPassword),
    Combination(accessMode: .afterFirstUnlock, migrate: false, protection: "cku", validAfter: samePhone),
    Combination(accessMode: .always, migrate: true, protection: "dk", validAfter: samePhoneOrWithPassword),
    Combination(accessMode: .always, migrate: false, protection: "dku", validAfter: samePhone),
  ]

  @Test(
    "After a restore, a key is valid if its settings allow it on that phone and with that backup",
    arguments: combinations, RestoreMethod.allCases)
  func restore(combination: Combination, method: RestoreMethod) throws {
    let password = method.hasPassword ? TestEnvironment.password : nil
    let manager = manager(combination.accessMode, migrate: combination.migrate)
    #expect(manager.register(key: "s3cret", forIdentifier: "mail"))
    #expect(try attributes(of: "mail")[kSecAttrAccessible as String] as? String == combination.protection)
    let backup = try environment.backUp(phone, password: password)
    let target = method.isSamePhone ? phone : try environment.phone()
    try target.erase()

    try environment.restore(backup, password: password, onto: target)

    let shouldBeValid = combination.validAfter.contains(method)
    #expect(isValid(on: target) == shouldBeValid)
    if shouldBeValid {
      let restoredAttributes = try target.perform { try attributes(of: "mail") }
      #expect(restoredAttributes[kSecAttrAccessible as String] as? String == combination.protection)
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
