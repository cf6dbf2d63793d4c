public import Basics
public import KeychainFormats
package import KeychainRules
public import Keychains

extension DeviceSession {
  /// The access group of an item that was added without one and by no app.
  package static let standardAccessGroup = "keyhaul"

  /// Adds an item as its device would: with the class that this version of iOS gives where none is asked for, in the
  /// first access group of the app, or in `keyhaul`.
  ///
  /// - Parameters:
  ///   - item: The item in clear, with its secret.
  ///   - app: Acts as this app of the device, with its groups alone; `nil` may use every group.
  /// - Throws: `.notEntitled`; an error of the keychain, such as `.duplicateItem`.
  @discardableResult
  public func add(_ item: KeychainItem, as app: String? = nil) throws(KeyhaulError) -> StoredItem {
    let item = try completed(item, as: app)
    let clock = environment.clock
    let random = environment.random
    return try changeItems { (store, keys) throws(KeyhaulError) in
      try store.add(item, keys: keys, now: clock.now(), random: random)
    }
  }

  /// Learns whether `add` would succeed, and changes nothing.
  ///
  /// - Returns: The item as it would be stored.
  /// - Throws: What `add` throws.
  package func rehearseAdding(_ item: KeychainItem, as app: String? = nil) throws(KeyhaulError) -> StoredItem {
    try requireWriting()
    let item = try completed(item, as: app)
    let store = try keychain
    return try store.rehearseAdding(item, keys: classKeys, now: environment.clock.now(), random: environment.random)
  }

  /// The items that a query means, opened.
  ///
  /// - Throws: `.notEntitled`; an error of the keychain, `.interactionNotAllowed` where a key is
  ///   not in memory. Finding nothing is no error.
  package func find(_ query: ItemQuery, as app: String? = nil) throws(KeyhaulError) -> FoundItems {
    let query = try restricted(query, to: app)
    let store = try keychain
    return try store.find(query, keys: classKeys)
  }

  /// The rows that `delete` would delete, those among them that cannot be opened.
  ///
  /// - Throws: `.notEntitled`; an error of the keychain.
  package func rows(matching query: ItemQuery, as app: String? = nil) throws(KeyhaulError) -> [KeychainRow] {
    let query = try restricted(query, to: app)
    let store = try keychain
    return try store.rows(matching: query, keys: classKeys)
  }

  /// Changes the items that a query means.
  ///
  /// - Returns: How many.
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

  /// Learns whether `update` would succeed, and changes nothing.
  ///
  /// - Returns: How many items would be changed.
  /// - Throws: What `update` throws.
  @discardableResult
  package func rehearseUpdating(
    _ query: ItemQuery, with changes: ItemChanges, as app: String? = nil
  ) throws(KeyhaulError) -> Int {
    try requireWriting()
    let query = try restricted(query, to: app)
    if let group = changes.attributes[.accessGroup]?.stringValue { try requireGroup(group, of: app) }
    let store = try keychain
    return try store.rehearseUpdating(
      query, with: changes, keys: classKeys, now: environment.clock.now(), tombstones: tombstonePolicy,
      random: environment.random)
  }

  /// Deletes the items that a query means.
  ///
  /// - Returns: How many.
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

  /// A tombstone tells other devices of a deletion; where nothing is synchronized there is no one to tell.
  private var tombstonePolicy: TombstonePolicy { record.isSyncing ? .leave : .forbid }

  /// The access groups that an app may use.
  ///
  /// - Throws: `.notEntitled` where the device has no such app.
  package func accessGroups(of app: String) throws(KeyhaulError) -> [String] {
    guard let found = record.apps.first(where: { $0.name == app }), !found.accessGroups.isEmpty else {
      throw KeyhaulError(.notEntitled, name, "it has no app \(app) with access groups")
    }
    return found.accessGroups
  }

  private func requireGroup(_ group: String, of app: String?) throws(KeyhaulError) {
    guard let app else { return }
    guard try accessGroups(of: app).contains(group) else {
      throw KeyhaulError(.notEntitled, name, "\(app) has no access group \(group)")
    }
  }

  private func completed(_ item: KeychainItem, as app: String?) throws(KeyhaulError) -> KeychainItem {
    var item = item
    if let group = item.accessGroup {
      try requireGroup(group, of: app)
    } else if let app {
      item[.accessGroup] = try accessGroups(of: app).first.map { .string($0) }
    } else {
      item[.accessGroup] = .string(Self.standardAccessGroup)
    }
    // Newer versions decide by the kind of item, which is the database's affair.
    if item[.protection] == nil, record.productVersion.defaultProtection == .always { item.protection = .always }
    return item
  }

  private func restricted(_ query: ItemQuery, to app: String?) throws(KeyhaulError) -> ItemQuery {
    guard let app else { return query }
    let own = try accessGroups(of: app)
    var query = query
    switch query.accessGroups {
    case .all: query.accessGroups = .only(own)
    case .only(let groups): query.accessGroups = .only(groups.filter(own.contains))
    }
    return query
  }
}
