import Basics
import KeychainCrypto
import KeychainFormats
import TestSupport

@testable import Keychains
@testable import VirtualDevice

/// A keychain in memory with a device's keybag, several apps, lock states, a passcode and a user.
final class SecItemPhone {
  /// The apps of the device. `mail` and `shop` share a group.
  static let apps: [String: SecItemCaller] = [
    "mail": SecItemCaller(keychainAccessGroups: ["TEAM.mail", "TEAM.shared"]),
    "shop": SecItemCaller(keychainAccessGroups: ["TEAM.shop", "TEAM.shared"]),
    "both": SecItemCaller(keychainAccessGroups: ["TEAM.mail", "TEAM.shop", "TEAM.shared"]),
    "clip with two groups": SecItemCaller(accessGroups: ["TEAM.mail", "TEAM.shared"], isAppClip: true),
    "clip with another app's group": SecItemCaller(
      keychainAccessGroups: ["TEAM.mail"], applicationIdentifier: "TEAM.other", isAppClip: true),
    "clip with its own group": SecItemCaller(
      keychainAccessGroups: ["TEAM.own"], applicationIdentifier: "TEAM.own", isAppClip: true),
    "clip": SecItemCaller(keychainAccessGroups: ["TEAM.mail"], isAppClip: true),
    "all": SecItemCaller(accessGroups: ["TEAM.mail", "*"]),
    "none": SecItemCaller(),
    "token-only": SecItemCaller(accessGroups: ["com.apple.token"]),
    "apsd": SecItemCaller(keychainAccessGroups: ["com.apple.apsd"]),
  ]

  /// The lock state. `boot` is the state before the first unlock after a restart.
  enum State: String, CaseIterable { case unlocked, locked, boot }

  let store: KeychainStore
  private(set) var keys: ClassKeys
  private(set) var state = State.unlocked
  private(set) var passcode: String
  private let random: SeededRandomSource
  private let hardwareSeed: String
  private var keybag: SystemKeybag
  private let initialKeybag: SystemKeybag
  private let initialClassKeys: Secret
  private let initialPasscode: String
  private var isInInitialState = true

  /// The date of new and changed items, in seconds since 2001.
  var now: Double = 1000
  /// Whether iCloud Keychain is on.
  var isSyncing = false
  var defaultProtection = ProtectionClass.whenUnlocked
  /// The user's answer to each request for authentication.
  var answer = AuthenticationOutcome.unavailable
  /// All requests for authentication, in order.
  private(set) var requests: [AuthenticationRequest] = []

  /// Creates a device.
  ///
  /// - Parameters:
  ///   - seed: The seed of all keys.
  ///   - passcode: The passcode, or an empty text for none.
  ///   - store: The keychain, or `nil` to create an empty one in memory.
  init(seed: String = "phone", passcode: String = "1234", store: KeychainStore? = nil) throws {
    self.store = try store ?? KeychainStore.inMemory()
    self.passcode = passcode
    random = SeededRandomSource(seed: seed)
    hardwareSeed = seed + " hardware"
    let newKeybag = try SystemKeybag.make(
      passcode: Secret(utf8: passcode), hardware: HardwareUID(from: SeededRandomSource(seed: hardwareSeed)),
      rounds: 1, random: random)
    keybag = newKeybag.keybag
    initialKeybag = newKeybag.keybag
    initialClassKeys = try newKeybag.classKeys.exported()
    initialPasscode = passcode
    keys = newKeybag.classKeys
  }

  /// Resets the keychain and the device to their initial state, without the cost of creating them.
  func reset() throws {
    try store.write { (transaction) throws(KeyhaulError) in
      for kind in ItemKind.allCases { try transaction.database.run("DELETE FROM \(kind.rawValue)") }
    }
    now = 1000
    guard !isInInitialState else { return }
    keybag = initialKeybag
    passcode = initialPasscode
    keys = try ClassKeys(importing: initialClassKeys)
    state = .unlocked
    isInInitialState = true
  }

  /// Runs a statement on the keychain's own connection.
  func run(_ sql: String) throws {
    try store.write { (transaction) throws(KeyhaulError) in try transaction.database.run(sql) }
  }

  private func hardware() throws -> HardwareUID { try HardwareUID(from: SeededRandomSource(seed: hardwareSeed)) }

  // MARK: Device state

  /// Locks the device, unless it has no passcode.
  func lock() {
    guard state == .unlocked, !passcode.isEmpty else { return }
    keys = keys.dropping([.fileComplete, .whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly])
    state = .locked
    isInInitialState = false
  }

  func unlock() throws {
    keys = try keybag.unlock(passcode: Secret(utf8: passcode), hardware: hardware())
    state = .unlocked
    isInInitialState = false
  }

  func restart() throws {
    guard !passcode.isEmpty else { return try unlock() }
    keys = try keybag.unlockBeforeFirstUnlock(hardware: hardware())
    state = .boot
    isInInitialState = false
  }

  /// Changes the passcode. An empty one removes it, together with the items of its class.
  func changePasscode(to newPasscode: String) throws {
    let newKeybag = try keybag.changingPasscode(
      from: Secret(utf8: passcode), to: Secret(utf8: newPasscode), hardware: hardware(), random: random)
    keybag = newKeybag.keybag
    keys = newKeybag.classKeys
    passcode = newPasscode
    isInInitialState = false
    if newPasscode.isEmpty { try store.removeAll(protectedBy: .whenPasscodeSetThisDeviceOnly) }
  }

  /// Brings the unlocked device into a lock state.
  func enter(_ state: State) throws {
    switch state {
    case .unlocked: break
    case .locked: lock()
    case .boot: try restart()
    }
  }

  // MARK: Calls

  static func caller(_ app: String) -> SecItemCaller { apps[app] ?? SecItemCaller() }

  private var environment: SecItemEnvironment {
    SecItemEnvironment(
      now: KeychainDate(secondsSinceReferenceDate: now), random: random, isSyncing: isSyncing,
      defaultProtection: defaultProtection
    ) { request in
      self.requests.append(request)
      return self.answer
    }
  }

  @discardableResult
  func add(_ query: SecItemQuery, as app: String = "mail") throws(SecItemError) -> SecItemValue? {
    try SecItemService(store: store).add(query, caller: Self.caller(app), keys: keys, environment: environment)
  }

  func find(_ query: SecItemQuery, as app: String = "mail") throws(SecItemError) -> SecItemValue? {
    try SecItemService(store: store).copyMatching(query, caller: Self.caller(app), keys: keys, environment: environment)
  }

  func update(_ query: SecItemQuery, _ changes: SecItemQuery, as app: String = "mail") throws(SecItemError) {
    try SecItemService(store: store).update(
      query, changes: changes, caller: Self.caller(app), keys: keys, environment: environment)
  }

  func delete(_ query: SecItemQuery, as app: String = "mail") throws(SecItemError) {
    try SecItemService(store: store).delete(query, caller: Self.caller(app), keys: keys, environment: environment)
  }

  /// Returns Apple's status of a call.
  func status(_ call: () throws(SecItemError) -> Void) -> SecItemStatus {
    do throws(SecItemError) {
      try call()
      return .success
    } catch {
      return error.status
    }
  }

  func statusOfAdding(_ query: SecItemQuery, as app: String = "mail") -> SecItemStatus {
    status { () throws(SecItemError) in try add(query, as: app) }
  }

  func statusOfFinding(_ query: SecItemQuery, as app: String = "mail") -> SecItemStatus {
    status { () throws(SecItemError) in _ = try find(query, as: app) }
  }

  func statusOfUpdating(_ query: SecItemQuery, _ changes: SecItemQuery, as app: String = "mail") -> SecItemStatus {
    status { () throws(SecItemError) in try update(query, changes, as: app) }
  }

  func statusOfDeleting(_ query: SecItemQuery, as app: String = "mail") -> SecItemStatus {
    status { () throws(SecItemError) in try delete(query, as: app) }
  }
}

extension SecItemValue {
  static func bytes(_ text: String) -> SecItemValue { .data(Array(text.utf8)) }
  static func date(_ seconds: Double) -> SecItemValue { .date(KeychainDate(secondsSinceReferenceDate: seconds)) }
  var text: String? { dataValue.map { String(decoding: $0, as: UTF8.self) } }
  subscript(key: String) -> SecItemValue? { dictionaryValue?[key] }
}
