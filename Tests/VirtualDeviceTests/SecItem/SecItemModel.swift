import Basics
import KeychainFormats
import VirtualDevice

/// A simple model of a keychain: a list of items and the rules of Apple's calls, without a database or keys.
struct SecItemModel {
  enum Kind: CaseIterable { case generic, internet }
  /// The lock state. `boot` is the state before the first unlock after a restart.
  enum Lock { case unlocked, locked, boot }

  /// The primary key of an item.
  struct Key: Hashable {
    var kind: Kind
    var account: String
    /// The service of a generic password, or the server of an internet password.
    var service: String
    var group: String
    var isSynchronized: Bool
  }

  struct Item: Equatable {
    var key: Key
    var row: Int
    var protection: ProtectionClass
    var label: String
    var secret: String
    var created: Double
    var modified: Double
    var isTombstone = false
  }

  /// The arguments of an addition. `nil` means that the query does not contain the attribute.
  struct Draft {
    var kind: Kind
    var account: String
    var service: String
    var group: String?
    var protection: ProtectionClass?
    var isSynchronized: Bool
    var secret: String
  }

  /// A query. `nil` matches anything, and synchronized items match only if `synchronized` includes them.
  struct Query {
    enum Synchronized { case unspecified, yes, no, any }
    var kind: Kind
    var account: String?
    var service: String?
    var group: String?
    var protection: ProtectionClass?
    var synchronized = Synchronized.unspecified
  }

  /// The changes of an update. `nil` means that the attribute stays the same.
  struct Change {
    var account: String?
    var label: String?
    var secret: String?
    var group: String?
    var protection: ProtectionClass?
    var isSynchronized: Bool?
  }

  private(set) var items: [Item] = []
  var lock = Lock.unlocked
  var hasPasscode: Bool
  let isSyncing: Bool
  private var nextRow = 1

  init(hasPasscode: Bool, isSyncing: Bool) {
    self.hasPasscode = hasPasscode
    self.isSyncing = isSyncing
  }

  static func groups(of app: String) -> [String] {
    app == "both" ? ["TEAM.mail", "TEAM.shop", "TEAM.shared"] : ["TEAM." + app, "TEAM.shared"]
  }

  /// Returns the status of using a key of the class in the current lock state.
  private func status(of protection: ProtectionClass) -> SecItemStatus {
    let isAccessible =
      switch protection {
      case .always, .alwaysThisDeviceOnly: true
      case .afterFirstUnlock, .afterFirstUnlockThisDeviceOnly: lock != .boot
      case .whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly: lock == .unlocked
      }
    if protection == .whenPasscodeSetThisDeviceOnly, !hasPasscode { return .authFailed }
    return isAccessible ? .success : .interactionNotAllowed
  }

  mutating func removePasscode() {
    hasPasscode = false
    items.removeAll { $0.protection == .whenPasscodeSetThisDeviceOnly }
  }

  // MARK: Calls

  mutating func add(_ draft: Draft, app: String, now: Double) -> SecItemStatus {
    let groups = Self.groups(of: app)
    if let group = draft.group, !groups.contains(group) { return .missingEntitlement }
    let protection = draft.protection ?? .whenUnlocked
    let encryptionStatus = status(of: protection)
    guard encryptionStatus == .success else { return encryptionStatus }
    let key = Key(
      kind: draft.kind, account: draft.account, service: draft.service, group: draft.group ?? groups[0],
      isSynchronized: draft.isSynchronized)
    var item = Item(
      key: key, row: nextRow, protection: protection, label: "", secret: draft.secret, created: now, modified: now)
    if let index = items.firstIndex(where: { $0.key == key }) {
      guard items[index].isTombstone, status(of: items[index].protection) == .success else { return .duplicateItem }
      item.row = items[index].row
      items[index] = item
    } else {
      nextRow += 1
      items.append(item)
    }
    return .success
  }

  /// Returns the items, or the status that ends the search.
  func find(_ query: Query, app: String, all: Bool) -> (status: SecItemStatus, items: [Item]) {
    guard let matches = matches(query, app: app) else { return (.missingEntitlement, []) }
    let results = all ? matches : Array(matches.prefix(1))
    for item in results {
      let status = status(of: item.protection)
      guard status == .success else { return (status, []) }
    }
    return results.isEmpty ? (.itemNotFound, []) : (.success, results)
  }

  mutating func update(_ query: Query, _ change: Change, app: String, now: Double) -> SecItemStatus {
    guard let matches = matches(query, app: app) else { return .missingEntitlement }
    if let group = change.group, !Self.groups(of: app).contains(group) { return .missingEntitlement }
    // A failed update of one item must not change the others.
    var changedModel = self
    for item in matches {
      let status = changedModel.update(item, with: change, now: now)
      guard status == .success else { return status }
    }
    self = changedModel
    return matches.isEmpty ? .itemNotFound : .success
  }

  private mutating func update(_ item: Item, with change: Change, now: Double) -> SecItemStatus {
    let decryptionStatus = status(of: item.protection)
    guard decryptionStatus == .success else { return decryptionStatus }
    var newItem = item
    newItem.key.account = change.account ?? item.key.account
    newItem.key.group = change.group ?? item.key.group
    newItem.key.isSynchronized = change.isSynchronized ?? item.key.isSynchronized
    newItem.label = change.label ?? item.label
    newItem.secret = change.secret ?? item.secret
    newItem.protection = change.protection ?? item.protection
    newItem.modified = now
    let encryptionStatus = status(of: newItem.protection)
    guard encryptionStatus == .success else { return encryptionStatus }
    if newItem.key != item.key, let duplicateIndex = items.firstIndex(where: { $0.key == newItem.key }) {
      let duplicate = items[duplicateIndex]
      guard duplicate.isTombstone, status(of: duplicate.protection) == .success else { return .duplicateItem }
      items.remove(at: duplicateIndex)
    }
    guard let index = items.firstIndex(where: { $0.row == item.row }) else { return .itemNotFound }
    items[index] = newItem
    if newItem.key != item.key, item.key.isSynchronized, isSyncing {
      var tombstone = item
      tombstone.isTombstone = true
      tombstone.row = nextRow
      nextRow += 1
      items.append(tombstone)
    }
    return .success
  }

  mutating func delete(_ query: Query, app: String) -> SecItemStatus {
    guard let matches = matches(query, app: app) else { return .missingEntitlement }
    for item in matches {
      guard let index = items.firstIndex(where: { $0.row == item.row }) else { continue }
      if item.key.isSynchronized, isSyncing, status(of: item.protection) == .success {
        items[index].isTombstone = true
      } else {
        items.remove(at: index)
      }
    }
    return matches.isEmpty ? .itemNotFound : .success
  }

  /// Returns the matching items in the order in which they were added; `nil` if the group is not the app's.
  private func matches(_ query: Query, app: String) -> [Item]? {
    let groups = Self.groups(of: app)
    if let group = query.group, !groups.contains(group) { return nil }
    let matches = items.filter { item in
      guard !item.isTombstone, item.key.kind == query.kind else { return false }
      guard query.group.map({ $0 == item.key.group }) ?? groups.contains(item.key.group) else { return false }
      switch query.synchronized {
      case .unspecified, .no: if item.key.isSynchronized { return false }
      case .yes: if !item.key.isSynchronized { return false }
      case .any: break
      }
      return (query.account ?? item.key.account) == item.key.account
        && (query.service ?? item.key.service) == item.key.service
        && (query.protection ?? item.protection) == item.protection
    }
    return matches.sorted { $0.row < $1.row }
  }
}
