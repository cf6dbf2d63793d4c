import Basics
import KeychainFormats

/// A simple model of a keychain: a list of items and the rules of Apple's calls, without a database, keys, or any code
/// under test.
struct SecItemModel {
  enum Kind: CaseIterable { case generic, internet }
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
  private func status(of protection: ProtectionClass, adding: Bool = false) -> Int32 {
    switch protection {
    case .always, .alwaysThisDeviceOnly: 0
    case .afterFirstUnlock, .afterFirstUnlockThisDeviceOnly: lock == .boot ? -25308 : 0
    case .whenUnlocked, .whenUnlockedThisDeviceOnly: lock == .unlocked ? 0 : -25308
    case .whenPasscodeSetThisDeviceOnly: !hasPasscode ? -25293 : lock == .unlocked ? 0 : -25308
    }
  }

  mutating func removePasscode() {
    hasPasscode = false
    items.removeAll { $0.protection == .whenPasscodeSetThisDeviceOnly }
  }

  // MARK: Calls

  mutating func add(_ draft: Draft, app: String, now: Double) -> Int32 {
    let groups = Self.groups(of: app)
    if let group = draft.group, !groups.contains(group) { return -34018 }
    let protection = draft.protection ?? .whenUnlocked
    let encryptionStatus = status(of: protection)
    guard encryptionStatus == 0 else { return encryptionStatus }
    let key = Key(
      kind: draft.kind, account: draft.account, service: draft.service, group: draft.group ?? groups[0],
      isSynchronized: draft.isSynchronized)
    var item = Item(
      key: key, row: nextRow, protection: protection, label: "", secret: draft.secret, created: now, modified: now)
    if let index = items.firstIndex(where: { $0.key == key }) {
      guard items[index].isTombstone, status(of: items[index].protection) == 0 else { return -25299 }
      item.row = items[index].row
      items[index] = item
    } else {
      nextRow += 1
      items.append(item)
    }
    return 0
  }

  /// Returns the items, or the status that ends the search.
  func find(_ query: Query, app: String, all: Bool) -> (status: Int32, items: [Item]) {
    guard let found = matches(query, app) else { return (-34018, []) }
    let rows = all ? found : Array(found.prefix(1))
    if let locked = rows.map({ status(of: $0.protection) }).first(where: { $0 != 0 }) { return (locked, []) }
    return rows.isEmpty ? (-25300, []) : (0, rows)
  }

  mutating func update(_ query: Query, _ change: Change, app: String, now: Double) -> Int32 {
    guard let found = matches(query, app) else { return -34018 }
    if let group = change.group, !Self.groups(of: app).contains(group) { return -34018 }
    var changed = self
    for item in found {
      let status = changed.update(item, change, now)
      guard status == 0 else { return status }
    }
    self = changed
    return found.isEmpty ? -25300 : 0
  }

  private mutating func update(_ item: Item, _ change: Change, _ now: Double) -> Int32 {
    let decryptionStatus = status(of: item.protection)
    guard decryptionStatus == 0 else { return decryptionStatus }
    var new = item
    new.key.account = change.account ?? item.key.account
    new.key.group = change.group ?? item.key.group
    new.key.isSynchronized = change.isSynchronized ?? item.key.isSynchronized
    new.label = change.label ?? item.label
    new.secret = change.secret ?? item.secret
    new.protection = change.protection ?? item.protection
    new.modified = now
    let encryptionStatus = status(of: new.protection)
    guard encryptionStatus == 0 else { return encryptionStatus }
    if new.key != item.key, let other = items.firstIndex(where: { $0.key == new.key }) {
      guard items[other].isTombstone, status(of: items[other].protection) == 0 else { return -25299 }
      items.remove(at: other)
    }
    guard let index = items.firstIndex(where: { $0.row == item.row }) else { return -25300 }
    items[index] = new
    if new.key != item.key, item.key.isSynchronized, isSyncing {
      var tombstone = item
      tombstone.isTombstone = true
      tombstone.row = nextRow
      nextRow += 1
      items.append(tombstone)
    }
    return 0
  }

  mutating func delete(_ query: Query, app: String) -> Int32 {
    guard let found = matches(query, app) else { return -34018 }
    for item in found {
      guard let index = items.firstIndex(where: { $0.row == item.row }) else { continue }
      if item.key.isSynchronized, isSyncing, status(of: item.protection) == 0 {
        items[index].isTombstone = true
      } else {
        items.remove(at: index)
      }
    }
    return found.isEmpty ? -25300 : 0
  }

  /// Returns the matching items in the order in which they were added; `nil` if the group is not the app's.
  private func matches(_ query: Query, _ app: String) -> [Item]? {
    let groups = Self.groups(of: app)
    if let group = query.group, !groups.contains(group) { return nil }
    return items.filter { item in
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
    }.sorted { $0.row < $1.row }
  }
}
