import ArchivedKeychain
import Foundation
import KeychainRules
import KeychainServices  // on iOS: import Security
import Migration
import Testing
import VirtualDevice

/// The app's own code, as it is written for iOS.
enum SignIn {
  static func remember(_ name: String, _ secret: String, accessible: CFString) -> OSStatus {
    let item: [String: Any] = [
      kSecClass as String: kSecClassGenericPassword,
      kSecAttrService as String: "org.example.app",
      kSecAttrAccount as String: name,
      kSecAttrAccessible as String: accessible,
      kSecValueData as String: Data(secret.utf8),
    ]
    return SecItemAdd(item as CFDictionary, nil)
  }

  static func run() {
    _ = remember("session token", "t-4711", accessible: kSecAttrAccessibleAfterFirstUnlock)
    _ = remember("device id", "d-0815", accessible: kSecAttrAccessibleWhenUnlockedThisDeviceOnly)
  }
}

extension KeychainClient {
  /// What restoring a backup of this phone, made now, would do to another one.
  func plan(to other: KeychainClient, hasPassword: Bool) throws -> MigrationPlan {
    let source = try device.openSession(.reading, verb: "test")
    let target = try other.device.openSession(.reading, verb: "test")
    defer {
      source.end()
      target.end()
    }
    let forecast = try BackupForecast(of: source, hasPassword: hasPassword)
    return try Restorer.plan(forecast, onto: target, policy: .replace)
  }
}

@Suite("Moving to a new phone")
struct MovingToANewPhone {
  let old: KeychainClient
  let new: KeychainClient

  init() throws {
    old = try KeychainClient.onNewDevice(passcode: "1234")
    new = try KeychainClient.onNewDevice(passcode: "0000")
    KeychainServices.using(old) { SignIn.run() }
  }

  @Test("with a password, the session moves and the device id stays")
  func withPassword() throws {
    let plan = try old.plan(to: new, hasPassword: true)
    #expect(plan["session token"] == .migrates)
    #expect(plan["device id"] == .staysBehind)
    #expect(plan.reason(for: "device id") == .deviceBound)
  }

  @Test("without one, nothing moves")
  func withoutPassword() throws {
    let plan = try old.plan(to: new, hasPassword: false)
    #expect(plan["session token"] == .staysBehind)
    #expect(plan.reason(for: "session token") == .backupNotEncrypted)
  }

  @Test("and nothing else is in the keychain that would surprise anyone")
  func wholeList() throws {
    let plan = try old.plan(to: new, hasPassword: true)
    let service = ItemPattern("org.example.app")
    let misses = plan.misses(of: [
      PlanExpectation(ItemMatcher(account: ItemPattern("session *"), service: service), .migrates),
      PlanExpectation(ItemMatcher(account: ItemPattern("device *")), .staysBehind, reason: .deviceBound),
      PlanExpectation(ItemMatcher(account: ItemPattern("password"), service: service), .absent),
    ])
    #expect(misses.isEmpty)
    #expect(plan.summary.total == 2)
  }
}
