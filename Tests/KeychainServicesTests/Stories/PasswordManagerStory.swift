import Basics
import Foundation
import KeychainExamples
import KeychainServices
import Testing

@Suite("Story 1: the password manager class", .onAPhone)
struct PasswordManagerStory {
  let desk: Desk
  let phone: KeychainClient

  init() throws {
    desk = try Desk.ofTheTest
    phone = try DefaultKeychain.client()
  }

  /// A manager that listens to the phone, as an app's would.
  private func manager(_ accessMode: PasswordManager.AccessMode = .whenUnlocked, migrate: Bool = true)
    -> PasswordManager
  {
    let manager = PasswordManager(listeningTo: phone.notificationCenter)
    manager.accessMode = accessMode
    manager.migrate = migrate
    return manager
  }

  @Test("a registered key is valid, another one is not, and without a key the question is whether there is one")
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

  @Test("registering again puts the new key, and the class of now, in the place of the old")
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

  @Test("account and generic attribute are the identifier as data, the group is the app's first")
  func storedForm() throws {
    manager().register(key: "s3cret", forIdentifier: "mail")
    let stored = try attributes(of: "mail")
    #expect(stored[kSecAttrAccount as String] as? Data == Data("mail".utf8))
    #expect(stored[kSecAttrGeneric as String] as? Data == Data("mail".utf8))
    #expect(stored[kSecAttrService as String] as? String == PasswordManager.service)
    #expect(stored[kSecAttrAccessGroup as String] as? String == "team.notes")
  }

  @Test("the same identifier in two groups is two keys")
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

  @Test("a deleted key is gone, and deleting it again says so")
  func delete() {
    let manager = manager()
    manager.register(key: "s3cret", forIdentifier: "mail")
    #expect(manager.deleteKey(forIdentifier: "mail"))
    #expect(!manager.validKey("s3cret", forIdentifier: "mail"))
    #expect(!manager.deleteKey(forIdentifier: "mail"))
    #expect(manager.lastStatus == errSecItemNotFound)
  }

  @Test("the last value is served from the cache, until another identifier, another group or a purge drops it")
  func cache() {
    let manager = manager()
    let eraser = PasswordManager(listeningTo: nil)
    for drop in [
      { _ = manager.validKey(nil, forIdentifier: "other") },
      { _ = manager.validKey(nil, forIdentifier: "mail", inGroup: "team.shared") },
      { manager.purge() },
    ] {
      manager.register(key: "s3cret", forIdentifier: "mail")
      #expect(manager.validKey("s3cret", forIdentifier: "mail"))
      #expect(eraser.deleteKey(forIdentifier: "mail"))
      #expect(manager.validKey("s3cret", forIdentifier: "mail"), "served from the cache")
      drop()
      #expect(!manager.validKey("s3cret", forIdentifier: "mail"), "read again")
    }
  }

  @Test("an app has one shared manager until it drops it; another app has its own")
  func shared() throws {
    let other = try desk.phone()
    let (first, again) = (PasswordManager.shared, PasswordManager.shared)
    #expect(first === again)
    #expect(other.speak { PasswordManager.shared } !== first)
    PasswordManager.dropShared()
    #expect(PasswordManager.shared !== first)
  }

  // MARK: (a) and (b)

  @Test("(a) ten seconds after the lock was announced a key for unlocked devices can't be had, one for always can")
  func lock() throws {
    let manager = manager(.whenUnlocked)
    manager.register(key: "s3cret", forIdentifier: "mail")
    #expect(manager.validKey("s3cret", forIdentifier: "mail"))
    try phone.pressSideButton()
    desk.clock.advance(by: .seconds(9))
    #expect(manager.validKey("s3cret", forIdentifier: "mail"), "the announcement is out, the keys are still there")
    desk.clock.advance(by: .seconds(1))
    #expect(!manager.validKey("s3cret", forIdentifier: "mail"))
    #expect(manager.lastStatus == -25308)
    try phone.unlock()
    #expect(manager.validKey("s3cret", forIdentifier: "mail"))

    let always = self.manager(.always)
    _ = always.register(key: "s3cret", forIdentifier: "mail")
    try phone.lock()
    #expect(always.validKey("s3cret", forIdentifier: "mail"))
  }

  @Test("(a) what is read while the lock is announced is not kept beyond it, and after an unlock it is kept again")
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

  @Test("(a) after a restart only always can be read, after the first unlock the second mode too")
  func restart() throws {
    for (mode, readable) in [
      (PasswordManager.AccessMode.whenUnlocked, [false, true, false]), (.afterFirstUnlock, [false, true, true]),
      (.always, [true, true, true]),
    ] {
      let phone = try desk.phone()
      let manager = PasswordManager(listeningTo: phone.notificationCenter)
      manager.accessMode = mode
      phone.speak { _ = manager.register(key: "s3cret", forIdentifier: "mail") }
      var seen: [Bool] = []
      func look() {
        manager.purge()
        seen.append(phone.speak { manager.validKey("s3cret", forIdentifier: "mail") })
      }
      try phone.restart()
      look()
      try phone.unlock()
      look()
      try phone.lock()
      look()
      #expect(seen == readable, "\(mode)")
    }
  }

  @Test("(b) a manager that does not listen serves the secret from a locked device")
  func deaf() throws {
    let deaf = PasswordManager(listeningTo: nil)
    deaf.register(key: "s3cret", forIdentifier: "mail")
    #expect(deaf.validKey("s3cret", forIdentifier: "mail"))
    try phone.lock()
    #expect(deaf.validKey("s3cret", forIdentifier: "mail"), "the mistake: it was never purged")
    deaf.purge()
    #expect(!deaf.validKey("s3cret", forIdentifier: "mail"))
    #expect(deaf.lastStatus == errSecInteractionNotAllowed)
  }

  @Test("going to the background purges too")
  func background() {
    let manager = manager()
    manager.register(key: "s3cret", forIdentifier: "mail")
    #expect(manager.validKey("s3cret", forIdentifier: "mail"))
    PasswordManager(listeningTo: nil).deleteKey(forIdentifier: "mail")
    phone.enterBackground()
    #expect(!manager.validKey("s3cret", forIdentifier: "mail"))
  }

  // MARK: (c) and (d)

  @Test("(c) a key that must not migrate is gone on a new phone, and back on the old one after erase and restore")
  func stayingKey() throws {
    _ = manager(migrate: false).register(key: "s3cret", forIdentifier: "mail")
    let backup = try desk.backUp(phone, password: Desk.password)
    let new = try desk.phone()
    try desk.restore(backup, password: Desk.password, onto: new)
    #expect(!isValid(on: new))

    try phone.erase()
    #expect(!isValid(on: phone))
    try desk.restore(backup, password: Desk.password, onto: phone)
    #expect(isValid(on: phone))
  }

  @Test("(c) a key that may migrate is valid on both")
  func movingKey() throws {
    _ = manager(migrate: true).register(key: "s3cret", forIdentifier: "mail")
    let backup = try desk.backUp(phone, password: Desk.password)
    let new = try desk.phone()
    try desk.restore(backup, password: Desk.password, onto: new)
    #expect(isValid(on: new))
    #expect(isValid(on: phone))
  }

  /// What the two switches choose, and where a key of that class is valid after each of the four restores.
  struct Combination: Sendable, CustomTestStringConvertible {
    let accessMode: PasswordManager.AccessMode
    let migrate: Bool
    let protection: String
    /// Same phone without and with a password, another phone without and with one.
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

  @Test("(d) six combinations, four restores", arguments: combinations, [0, 1, 2, 3])
  func table(combination: Combination, restore: Int) throws {
    let password = restore % 2 == 1 ? Desk.password : nil
    let isSamePhone = restore < 2
    let manager = manager(combination.accessMode, migrate: combination.migrate)
    #expect(manager.register(key: "s3cret", forIdentifier: "mail"))
    #expect(try attributes(of: "mail")[kSecAttrAccessible as String] as? String == combination.protection)
    let backup = try desk.backUp(phone, password: password)
    let target = isSamePhone ? phone : try desk.phone()
    try target.erase()

    try desk.restore(backup, password: password, onto: target)

    #expect(isValid(on: target) == combination.restored[restore])
    if combination.restored[restore] {
      let stored = try target.speak { try attributes(of: "mail") }
      #expect(stored[kSecAttrAccessible as String] as? String == combination.protection)
    }
  }

  private func isValid(on phone: KeychainClient) -> Bool {
    phone.speak { PasswordManager(listeningTo: nil).validKey("s3cret", forIdentifier: "mail") }
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
