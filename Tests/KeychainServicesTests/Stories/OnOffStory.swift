import Backups
import Foundation
import KeychainCrypto
import KeychainExamples
import KeychainServices
import KeyhaulKit
import Testing

@Suite("Story 4: items that require a passcode", .onAPhone(passcode: ""))
struct OnOffStory {
  let environment: TestEnvironment
  let phone: KeychainClient

  init() throws {
    environment = try TestEnvironment.current
    phone = try DefaultKeychain.client()
  }

  @Test(
    "Removing the passcode deletes only the items of the passcode class, and setting it again does not restore them",
    // The statuses of adding and reading a key, of reading and adding it without a passcode, and of reading it with a
    // new passcode: errSecDuplicateItem (-25299), errSecItemNotFound (-25300), errSecAuthFailed (-25293).
    arguments: [
      (kSecAttrAccessibleWhenUnlocked as String, [0, 0, 0, -25299, 0]),
      (kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly as String, [0, 0, -25300, -25293, -25300]),
    ] as [(String, [OSStatus])])
  func passcodeChanges(accessible: String, expected: [OSStatus]) throws {
    let keys = ProtectedKeys(service: "game", accessible: accessible as NSString)
    let secret = Data("secret".utf8)
    var statuses: [OSStatus] = []

    try phone.setPasscode()
    statuses.append(keys.addKey(secret, named: "key"))
    statuses.append(keys.readKey(named: "key").status)
    try phone.removePasscode()
    statuses.append(keys.readKey(named: "key").status)
    statuses.append(keys.addKey(secret, named: "key"))
    try phone.setPasscode()
    statuses.append(keys.readKey(named: "key").status)

    #expect(statuses == expected)
  }

  @Test("Keys can be added once and updated, and a reset deletes all keys of the service")
  func wrapper() {
    let keys = ProtectedKeys(service: "game", accessible: kSecAttrAccessibleAfterFirstUnlock)
    #expect(keys.updateKey(Data("1".utf8), named: "key") == errSecItemNotFound)
    #expect(keys.addKey(Data("1".utf8), named: "key") == errSecSuccess)
    #expect(keys.addKey(Data("2".utf8), named: "key") == errSecDuplicateItem)
    #expect(keys.updateKey(Data("2".utf8), named: "key") == errSecSuccess)
    #expect(keys.readKey(named: "key").key == Data("2".utf8))
    #expect(keys.addKey(Data("3".utf8), named: "other") == errSecSuccess)
    let otherService = ProtectedKeys(service: "elsewhere", accessible: kSecAttrAccessibleAlways)
    #expect(otherService.addKey(Data("4".utf8), named: "key") == errSecSuccess)

    #expect(keys.resetAll() == errSecSuccess)
    #expect(keys.readKey(named: "key").status == errSecItemNotFound)
    #expect(keys.readKey(named: "other").key == nil)
    #expect(otherService.readKey(named: "key").key == Data("4".utf8))
    #expect(keys.resetAll() == errSecItemNotFound)
  }

  @Test(
    "An item of the passcode class is in no backup, not even in one for its own device",
    arguments: [nil, TestEnvironment.password])
  func neverInABackup(password: String?) throws {
    try phone.setPasscode()
    let keys = ProtectedKeys(service: "game", accessible: kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly)
    let companion = ProtectedKeys(service: "companion", accessible: kSecAttrAccessibleWhenUnlockedThisDeviceOnly)
    #expect(keys.addKey(Data("secret".utf8), named: "key") == errSecSuccess)
    #expect(companion.addKey(Data("secret".utf8), named: "key") == errSecSuccess)
    let backup = try environment.backUp(phone, password: password)

    let plan = try environment.restore(backup, password: password, onto: phone)

    #expect(plan.decisions.count == 1, "the backup contains only the companion's key")
    #expect(companion.readKey(named: "key").status == errSecSuccess)
    #expect(keys.readKey(named: "key").status == errSecItemNotFound)
  }
}
