public import Foundation
public import KeychainServices
import Synchronization

/// One app's keys, each under an identifier: two switches choose how they are protected, and the last one found is kept
/// at hand for as long as the device is unlocked and the app in front.
public final class PasswordManager: Sendable {
  /// When keys may be read.
  public enum AccessMode: Sendable, CaseIterable {
    case whenUnlocked
    case afterFirstUnlock
    case always
  }

  /// The service under which all keys are stored.
  public static let service = "PasswordManager"

  fileprivate struct State {
    var migrate = true
    var accessMode = AccessMode.whenUnlocked
    var lastStatus = errSecSuccess
    /// The entry that was used last, and its key where it was found and may be kept.
    var entry: Entry?
    var cachedKey: Data?
    var mayCache = true
    /// Raised by each purge: what was read before one is not kept after it.
    var purges = 0
  }

  fileprivate struct Entry: Equatable {
    let identifier: String
    let group: String?

    /// What finds the entry, by what is unique of it.
    var query: [String: Any] {
      var query: [String: Any] = [
        kSecClass as String: kSecClassGenericPassword,
        kSecAttrService as String: PasswordManager.service,
        kSecAttrAccount as String: Data(identifier.utf8),
      ]
      if let group { query[kSecAttrAccessGroup as String] = group }
      return query
    }
  }

  private let state = Mutex(State())
  private let announcements: Announcements?

  /// - Parameter notifications: Where the device announces that it locks and the app that it leaves the front; `nil` for
  ///   a manager that does not listen and goes on serving a key that the device has locked away.
  public init(listeningTo notifications: NotificationCenter?) {
    announcements = notifications.map(Announcements.init)
    announcements?.observe([.protectedDataWillBecomeUnavailable]) { [weak self] in self?.stopCaching() }
    announcements?.observe([.protectedDataDidBecomeAvailable]) { [weak self] in self?.resumeCaching() }
    announcements?.observe([.applicationDidEnterBackground]) { [weak self] in self?.purge() }
  }

  /// Whether the keys restore to another device.
  public var migrate: Bool {
    get { state.withLock { $0.migrate } }
    set { state.withLock { $0.migrate = newValue } }
  }

  /// When the keys may be read. Both switches hold for what is registered from then on.
  public var accessMode: AccessMode {
    get { state.withLock { $0.accessMode } }
    set { state.withLock { $0.accessMode = newValue } }
  }

  /// What the keychain answered last.
  public var lastStatus: OSStatus { state.withLock { $0.lastStatus } }

  /// Adds a key, or puts it in the place of the one that is there, under the class that the switches choose.
  ///
  /// - Parameter group: The access group; `nil` for the app's first.
  @discardableResult
  public func register(key: String, forIdentifier identifier: String, inGroup group: String? = nil) -> Bool {
    let entry = Entry(identifier: identifier, group: group)
    let accessible = state.withLock { state in
      state.select(entry)
      state.purge()
      return state.accessible
    }
    let values: [String: Any] = [
      kSecValueData as String: Data(key.utf8),
      kSecAttrGeneric as String: Data(identifier.utf8),
      kSecAttrAccessible as String: accessible,
    ]
    let item = entry.query.merging(values) { $1 }
    var status = SecItemAdd(item as CFDictionary, nil)
    if status == errSecDuplicateItem {
      status = SecItemUpdate(entry.query as CFDictionary, values as CFDictionary)
    }
    return note(status)
  }

  /// Deletes an identifier's key.
  @discardableResult
  public func deleteKey(forIdentifier identifier: String, inGroup group: String? = nil) -> Bool {
    let entry = Entry(identifier: identifier, group: group)
    state.withLock { state in
      state.select(entry)
      state.purge()
    }
    return note(SecItemDelete(entry.query as CFDictionary))
  }

  /// Whether an identifier has this key; without a key, whether it has one at all. Without an identifier: no.
  public func validKey(_ key: String?, forIdentifier identifier: String?, inGroup group: String? = nil) -> Bool {
    guard let identifier else { return note(errSecParam) }
    let entry = Entry(identifier: identifier, group: group)
    let (cached, purges) = state.withLock { state in
      state.select(entry)
      return (state.cachedKey, state.purges)
    }
    guard let found = cached ?? read(entry, unlessPurgedSince: purges) else { return false }
    return key.map { Data($0.utf8) == found } ?? true
  }

  /// The key from the keychain, which is kept at hand unless it was to be forgotten meanwhile.
  private func read(_ entry: Entry, unlessPurgedSince purges: Int) -> Data? {
    var query = entry.query
    query[kSecReturnData as String] = true
    var result: CFTypeRef?
    guard note(SecItemCopyMatching(query as CFDictionary, &result)), let found = result as? Data else { return nil }
    state.withLock { state in
      if state.mayCache, state.purges == purges { state.cachedKey = found }
    }
    return found
  }

  /// - Returns: Whether it was a success.
  private func note(_ status: OSStatus) -> Bool {
    state.withLock { $0.lastStatus = status }
    return status == errSecSuccess
  }

  /// Forgets the key that is kept at hand.
  public func purge() { state.withLock { $0.purge() } }

  /// From the announcement on nothing is kept: what is read in the seconds before the lock would outlive it.
  private func stopCaching() {
    state.withLock { state in
      state.mayCache = false
      state.purge()
    }
  }

  private func resumeCaching() { state.withLock { $0.mayCache = true } }
}

extension PasswordManager {
  /// The one manager of the app that this task speaks for. It listens to that app's device.
  ///
  /// - Returns: A manager that listens to nobody where there is no device at all.
  public static var shared: PasswordManager {
    guard let client = try? DefaultKeychain.client() else { return PasswordManager(listeningTo: nil) }
    return client.companion(PasswordManager.self) { PasswordManager(listeningTo: client.notificationCenter) }
  }

  /// Lets go of the shared manager and what it keeps; the next one starts anew.
  public static func dropShared() {
    guard let client = try? DefaultKeychain.client() else { return }
    client.dropCompanion(PasswordManager.self)
  }
}

extension PasswordManager.State {
  fileprivate mutating func purge() {
    cachedKey = nil
    purges &+= 1
  }

  /// Another identifier or group than the last one drops what was kept.
  fileprivate mutating func select(_ chosen: PasswordManager.Entry) {
    if entry != chosen { purge() }
    entry = chosen
  }

  /// The class that the two switches choose together.
  fileprivate var accessible: CFString {
    switch (accessMode, migrate) {
    case (.whenUnlocked, true): kSecAttrAccessibleWhenUnlocked
    case (.whenUnlocked, false): kSecAttrAccessibleWhenUnlockedThisDeviceOnly
    case (.afterFirstUnlock, true): kSecAttrAccessibleAfterFirstUnlock
    case (.afterFirstUnlock, false): kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly
    case (.always, true): kSecAttrAccessibleAlways
    case (.always, false): kSecAttrAccessibleAlwaysThisDeviceOnly
    }
  }
}
