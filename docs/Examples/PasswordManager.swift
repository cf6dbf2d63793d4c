public import Foundation
public import KeychainServices
import Synchronization

/// An app's keys, each under an identifier. Two properties select how keys are protected. The last key found is cached
/// while the device is unlocked and the app is in the foreground.
public final class PasswordManager: Sendable {
  /// The condition for reading keys.
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
    /// The entry that was used last, and its key if it was found and may be cached.
    var entry: Entry?
    var cachedKey: Data?
    var mayCache = true
    /// Increased by each purge. A key that was read before a purge is not cached after it.
    var purges = 0
  }

  fileprivate struct Entry: Equatable {
    let identifier: String
    let group: String?

    /// A query for the entry, by its primary key.
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

  /// Creates a manager.
  ///
  /// - Parameter notifications: The center that announces locks of the device and that the app goes to the background.
  ///   If it is `nil`, the manager keeps returning a cached key while the device is locked.
  public init(listeningTo notifications: NotificationCenter?) {
    announcements = notifications.map(Announcements.init)
    announcements?.observe([.protectedDataWillBecomeUnavailable]) { [weak self] in self?.stopCaching() }
    announcements?.observe([.protectedDataDidBecomeAvailable]) { [weak self] in self?.resumeCaching() }
    announcements?.observe([.applicationDidEnterBackground]) { [weak self] in self?.purge() }
  }

  /// Whether new keys can be restored to another device.
  public var migrate: Bool {
    get { state.withLock { $0.migrate } }
    set { state.withLock { $0.migrate = newValue } }
  }

  /// The condition for reading new keys. Both properties apply to keys that are registered later.
  public var accessMode: AccessMode {
    get { state.withLock { $0.accessMode } }
    set { state.withLock { $0.accessMode = newValue } }
  }

  /// The last status of the keychain.
  public var lastStatus: OSStatus { state.withLock { $0.lastStatus } }

  /// Adds a key, or replaces the existing one, with the protection class that the two properties select.
  ///
  /// - Parameter group: The access group, or `nil` to add to the app's first group.
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

  /// Whether an identifier has this key, or any key if `key` is `nil`. Returns `false` without an identifier.
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

  /// Reads the key from the keychain, and caches it unless the cache was purged since.
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

  /// Records a status.
  ///
  /// - Returns: Whether the status is success.
  private func note(_ status: OSStatus) -> Bool {
    state.withLock { $0.lastStatus = status }
    return status == errSecSuccess
  }

  /// Forgets the cached key.
  public func purge() { state.withLock { $0.purge() } }

  /// Stops caching when a lock is announced. A key that is read in the seconds before the lock would outlive it.
  private func stopCaching() {
    state.withLock { state in
      state.mayCache = false
      state.purge()
    }
  }

  private func resumeCaching() { state.withLock { $0.mayCache = true } }
}

extension PasswordManager {
  /// The manager of the app that this task's calls belong to. It listens to that app's device, or to nothing if there
  /// is no device.
  public static var shared: PasswordManager {
    guard let client = try? DefaultKeychain.client() else { return PasswordManager(listeningTo: nil) }
    return client.associatedObject(PasswordManager.self) { PasswordManager(listeningTo: client.notificationCenter) }
  }

  /// Drops the shared manager with its cached key. The next use of `shared` creates a new one.
  public static func dropShared() {
    guard let client = try? DefaultKeychain.client() else { return }
    client.removeAssociatedObject(PasswordManager.self)
  }
}

extension PasswordManager.State {
  fileprivate mutating func purge() {
    cachedKey = nil
    purges &+= 1
  }

  /// Purges the cache if the identifier or group differs from the last one.
  fileprivate mutating func select(_ chosen: PasswordManager.Entry) {
    if entry != chosen { purge() }
    entry = chosen
  }

  /// The protection class that the two properties select.
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
