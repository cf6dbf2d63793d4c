public import Basics
public import KeychainFormats
package import KeychainRules
public import Keychains

extension DeviceSession {
  /// The access group of an item that was added without a group and without an app.
  package static let standardAccessGroup = "keyhaul"

  /// Adds an item as its device would. The iOS version determines the default protection class. The default
  /// access group is the first group of the app, or `keyhaul`.
  ///
  /// - Parameters:
  ///   - item: The decrypted item, with its secret.
  ///   - app: The app that adds the item. It may use only its own groups. `nil` allows every group.
  /// - Returns: The stored item.
  /// - Throws: `.notEntitled`; an error of the keychain, such as `.duplicateItem`.
  @discardableResult
  public func add(_ item: KeychainItem, as app: String? = nil) throws(KeyhaulError) -> StoredItem {
    let item = try withDefaults(item, as: app)
    let clock = environment.clock
    let random = environment.random
    return try changeItems { (store, keys) throws(KeyhaulError) in
      try store.add(item, keys: keys, now: clock.now(), random: random)
    }
  }

  /// Checks whether `add` would succeed, without changing anything.
  ///
  /// - Returns: The item as it would be stored.
  /// - Throws: The errors of `add`.
  package func validateAdding(_ item: KeychainItem, as app: String? = nil) throws(KeyhaulError) -> StoredItem {
    try requireWriting()
    let item = try withDefaults(item, as: app)
    let store = try keychain
    return try store.validateAdding(item, keys: classKeys, now: environment.clock.now(), random: environment.random)
  }

  /// Returns the matching items, decrypted.
  ///
  /// - Throws: `.notEntitled`; an error of the keychain, such as `.interactionNotAllowed` if a key is not in memory. An
  ///   empty result is not an error.
  package func find(_ query: ItemQuery, as app: String? = nil) throws(KeyhaulError) -> QueryResult {
    let query = try restricted(query, to: app)
    let store = try keychain
    return try store.find(query, keys: classKeys)
  }

  /// Returns the rows that `delete` would delete, including those that cannot be decrypted.
  ///
  /// - Throws: `.notEntitled`; an error of the keychain.
  package func rows(matching query: ItemQuery, as app: String? = nil) throws(KeyhaulError) -> [KeychainRow] {
    let query = try restricted(query, to: app)
    let store = try keychain
    return try store.rows(matching: query, keys: classKeys)
  }

  /// Updates the matching items.
  ///
  /// - Returns: The number of updated items.
  @discardableResult
  package func update(
    _ query: ItemQuery, with changes: ItemChanges, as app: String? = nil
  ) throws(KeyhaulError) -> Int {
    let query = try restricted(query, to: app)
    if let group = changes.attributes[.accessGroup]?.stringValue { try requireGroup(group, of: app) }
    let clock = environment.clock
    let random = environment.random
    let policy = tombstonePolicy
    return try changeItems { (store, keys) throws(KeyhaulError) in
      try store.update(query, with: changes, keys: keys, now: clock.now(), tombstones: policy, random: random)
    }
  }

  /// Checks whether `update` would succeed, without changing anything.
  ///
  /// - Returns: The number of items that would be updated.
  /// - Throws: The errors of `update`.
  @discardableResult
  package func validateUpdating(
    _ query: ItemQuery, with changes: ItemChanges, as app: String? = nil
  ) throws(KeyhaulError) -> Int {
    try requireWriting()
    let query = try restricted(query, to: app)
    if let group = changes.attributes[.accessGroup]?.stringValue { try requireGroup(group, of: app) }
    let store = try keychain
    return try store.validateUpdating(
      query, with: changes, keys: classKeys, now: environment.clock.now(), tombstones: tombstonePolicy,
      random: environment.random)
  }

  /// Deletes the matching items.
  ///
  /// - Returns: The number of deleted items.
  @discardableResult
  package func delete(_ query: ItemQuery, as app: String? = nil) throws(KeyhaulError) -> Int {
    let query = try restricted(query, to: app)
    let clock = environment.clock
    let random = environment.random
    let policy = tombstonePolicy
    return try changeItems { (store, keys) throws(KeyhaulError) in
      try store.delete(query, keys: keys, now: clock.now(), tombstones: policy, random: random)
    }
  }

  /// The policy for tombstones. Deletions leave tombstones only if iCloud Keychain is on, because tombstones inform
  /// other devices.
  private var tombstonePolicy: TombstonePolicy { record.isSyncing ? .leave : .forbid }

  /// Returns the access groups of an app.
  ///
  /// - Throws: `.notEntitled` if the device has no such app, or if the app has no access groups.
  package func accessGroups(of app: String) throws(KeyhaulError) -> [String] {
    guard let installedApp = record.apps.first(where: { $0.name == app }), !installedApp.accessGroups.isEmpty else {
      throw KeyhaulError(.notEntitled, name, "it has no app \(app) with access groups")
    }
    return installedApp.accessGroups
  }

  private func requireGroup(_ group: String, of app: String?) throws(KeyhaulError) {
    guard let app else { return }
    guard try accessGroups(of: app).contains(group) else {
      throw KeyhaulError(.notEntitled, name, "\(app) has no access group \(group)")
    }
  }

  /// Returns the item with its access group and, in iOS 4, its default protection class.
  private func withDefaults(_ item: KeychainItem, as app: String?) throws(KeyhaulError) -> KeychainItem {
    var item = item
    if let group = item.accessGroup {
      try requireGroup(group, of: app)
    } else if let app {
      item[.accessGroup] = try accessGroups(of: app).first.map { .string($0) }
    } else {
      item[.accessGroup] = .string(Self.standardAccessGroup)
    }
    // In newer versions, the database chooses the default by the kind of item.
    if item[.protection] == nil, record.productVersion.defaultProtection == .always { item.protection = .always }
    return item
  }

  private func restricted(_ query: ItemQuery, to app: String?) throws(KeyhaulError) -> ItemQuery {
    guard let app else { return query }
    let appGroups = try accessGroups(of: app)
    var query = query
    switch query.accessGroups {
    case .all: query.accessGroups = .only(appGroups)
    case .only(let groups): query.accessGroups = .only(groups.filter(appGroups.contains))
    }
    return query
  }
}
