package import Basics
package import KeychainFormats
package import KeychainRules
package import Keychains

/// An item of a keychain: the decrypted item, or the known properties of an item that cannot be decrypted.
///
/// The items of backups, devices, databases and dumps all have this form.
public struct KeychainEntry: Sendable {
  /// The position among the items of its keychain, from 0, as in a backup, or `nil` if it is unknown.
  package var index: Int?
  /// The parts of the item that its source can contain.
  package var scope = Scope()
  private var source: Source

  private enum Source: Sendable {
    /// A decrypted item of a backup that is in memory anyway.
    case backup(BackupItem)
    indirect case other(Content, Details)
  }

  /// The decrypted parts of an item.
  package enum Content: Sendable {
    /// The item, with its secret if it has one.
    case item(KeychainItem)
    /// The attributes only. The reason why the secret cannot be decrypted is `nil` if the source has none.
    case attributes(KeychainItem, Reason?)
    /// Nothing, for a reason if it is known.
    case undecryptable(ItemDescriptor, Reason?)
  }

  private struct Details: Sendable {
    let rowReference: RowReference
    let protection: ProtectionClass?
    var persistentReference: [UInt8]?
    var fingerprint: ItemFingerprint?
    var detail: String?
    var isSynchronizable: Bool?
    var modificationDate: KeychainDate?
    var isLocked = false
  }

  /// The parts of an item that a source can contain. A comparison ignores the other parts.
  package struct Scope: Sendable {
    /// The attributes that the source can contain, or `nil` if it can contain all.
    package var attributes: Set<AttributeCode>?
    /// Whether an absent secret means that the item has none.
    package var includesSecret = true
    /// Whether dates are truncated to whole seconds.
    package var hasWholeSeconds = false

    package init(includesSecret: Bool = true, attributes: Set<AttributeCode>? = nil, hasWholeSeconds: Bool = false) {
      self.includesSecret = includesSecret
      self.attributes = attributes
      self.hasWholeSeconds = hasWholeSeconds
    }

    func includes(_ code: AttributeCode) -> Bool { attributes?.contains(code) ?? true }
  }

  private init(_ index: Int?, _ content: Content, _ details: Details) {
    self.index = index
    source = .other(content, details)
  }

  /// Creates an entry for a decrypted item of a list.
  ///
  /// - Parameters:
  ///   - index: The position in its list, from 0.
  ///   - item: The decrypted item.
  ///   - persistentReference: The persistent reference stored with the item, 12 or 20 bytes, or `nil` if it has none.
  ///   - protection: The class in the encrypted data, if it is available. By default, the item's own.
  package init(
    index: Int?, item: KeychainItem, persistentReference: [UInt8]? = nil, protection: ProtectionClass? = nil
  ) {
    self.init(
      index, .item(item),
      Details(
        rowReference: RowReference(kind: item.kind, rowID: Int64(index ?? 0)),
        protection: protection ?? item.protection,
        persistentReference: persistentReference))
  }

  /// Creates an entry for an item that cannot be decrypted.
  package init(
    index: Int?, undecryptable identity: ItemDescriptor, protection: ProtectionClass?, persistentReference: [UInt8]?,
    reason: Reason?
  ) {
    self.init(
      index, .undecryptable(identity, reason),
      Details(
        rowReference: RowReference(kind: identity.kind, rowID: Int64(index ?? 0)), protection: protection,
        persistentReference: persistentReference))
  }

  /// Creates an entry for a decrypted item of a backup.
  package init(opened backupItem: BackupItem) {
    index = backupItem.index
    source = .backup(backupItem)
  }

  /// Creates an entry for a decrypted item of a table.
  ///
  /// - Parameters:
  ///   - item: The decrypted item.
  ///   - rowReference: The item's table and row number. In a backup, the row number is the item's position.
  ///   - index: The position among the items of its keychain.
  ///   - isSynchronizable: Whether the item syncs. By default, the item's attributes determine this.
  package init(_ item: KeychainItem, at rowReference: RowReference, index: Int? = nil, isSynchronizable: Bool? = nil) {
    self.init(
      index, .item(item),
      Details(rowReference: rowReference, protection: item.protection, isSynchronizable: isSynchronizable))
  }

  /// Creates an entry for an item that cannot be decrypted, or only in part.
  ///
  /// - Parameters:
  ///   - content: The decrypted parts.
  ///   - rowReference: The item's table and row number.
  ///   - index: The position among the items of its keychain.
  ///   - protection: The protection class, if it is known.
  ///   - persistentReference: The persistent reference stored with the item, 12 or 20 bytes.
  ///   - detail: A further description of the reason.
  package init(
    _ content: Content, at rowReference: RowReference, index: Int?, _ protection: ProtectionClass?,
    persistentReference: [UInt8]? = nil, detail: String? = nil
  ) {
    self.init(
      index, content,
      Details(
        rowReference: rowReference, protection: protection, persistentReference: persistentReference, detail: detail))
  }

  /// Creates an entry for an item that a search on a device has found.
  package init(_ stored: StoredItem) {
    self.init(stored.item, at: stored.summary.reference, isSynchronizable: stored.summary.isSynchronizable)
  }

  /// Creates an entry for a row of a device, with the persistent reference that a backup would contain.
  package init(_ row: KeychainRow, index: Int? = nil) {
    let summary = row.summary
    let content: Content
    var (protection, detail): (ProtectionClass?, String?) = (summary.protection, nil)
    switch row.content {
    case .item(let item):
      content = .item(item)
      protection = item.protection
    case .fault(let fault):
      var reason = Reason.noClassKey
      if case .undecodable(let text) = fault { (reason, detail) = (.malformed, text) }
      content = .undecryptable(ItemDescriptor(undecryptable: summary.kind, accessGroup: summary.accessGroup), reason)
    }
    self.init(
      index, content,
      Details(
        rowReference: summary.reference, protection: protection,
        persistentReference: try? PersistentReference.uuid(summary.kind, summary.persistentReference).serialized(),
        detail: detail, isSynchronizable: summary.isSynchronizable, modificationDate: summary.modificationDate,
        isLocked: row.fault?.isPermanent == false))
  }

  /// Returns the entries of a search, in the order of the kinds, then of the rows, as in a backup.
  package static func all(of result: QueryResult) -> [KeychainEntry] {
    let entries = result.items.map { KeychainEntry($0) } + result.undecodable.map { KeychainEntry($0) }
    return entries.sorted { (order($0.kind), $0.rowReference.rowID) < (order($1.kind), $1.rowReference.rowID) }
  }

  private static func order(_ kind: ItemKind) -> Int { ItemKind.allCases.firstIndex(of: kind) ?? 0 }

  // MARK: Properties

  /// The decrypted parts of the item.
  package var content: Content {
    switch source {
    case .backup(let backupItem):
      backupItem.item.map { .item($0) } ?? .undecryptable(ItemDescriptor(undecryptable: backupItem.kind), nil)
    case .other(let content, _): content
    }
  }

  private var details: Details {
    switch source {
    case .backup(let backupItem):
      Details(
        rowReference: RowReference(kind: backupItem.kind, rowID: Int64(backupItem.index)),
        protection: backupItem.protection ?? backupItem.item?.protection,
        persistentReference: backupItem.persistentReference, fingerprint: backupItem.fingerprint)
    case .other(_, let details): details
    }
  }

  /// The decrypted item, or `nil` if the item or its secret cannot be decrypted. The secret is absent if the source has
  /// none.
  package var item: KeychainItem? {
    switch content {
    case .item(let item), .attributes(let item, nil): item
    case .attributes, .undecryptable: nil
    }
  }

  /// The decrypted parts of the item: without its secret if only the secret cannot be decrypted.
  package var attributes: KeychainItem? {
    switch content {
    case .item(let item), .attributes(let item, _): item
    case .undecryptable: nil
    }
  }

  /// Whether the secret is decrypted.
  package var hasSecret: Bool { if case .item = content { true } else { false } }

  /// The reason why the item cannot be decrypted, or `nil` if it is decrypted or the reason is unknown.
  package var reason: Reason? {
    switch content {
    case .item: nil
    case .attributes(_, let reason), .undecryptable(_, let reason): reason
    }
  }

  /// Whether the item cannot be decrypted.
  var isEncrypted: Bool { item == nil }

  /// The kind of item.
  package var kind: ItemKind {
    switch source {
    case .backup(let backupItem): backupItem.kind
    case .other(_, let details): details.rowReference.kind
    }
  }

  /// The names of the item. Computed on each access.
  package var identity: ItemDescriptor {
    switch content {
    case .item(let item), .attributes(let item, _): ItemDescriptor(item)
    case .undecryptable(let identity, _): identity
    }
  }

  /// The item's table and row number. In a backup, the row number is the item's position.
  package var rowReference: RowReference { details.rowReference }
  /// The position in its list, or the row number if it is unknown.
  var position: Int { index ?? Int(rowReference.rowID) }
  /// The item's protection class, or `nil` if it is unknown.
  package var protection: ProtectionClass? { details.protection }
  /// The persistent reference, which may identify the item in two keychains: 12 or 20 bytes, as in a backup.
  package var persistentReference: [UInt8]? { details.persistentReference }
  /// The digest of the item's data in a backup, or `nil` if the source is not a backup.
  package var fingerprint: ItemFingerprint? { details.fingerprint }
  /// A further description of the reason.
  package var detail: String? { details.detail }
  /// Whether the item syncs.
  package var isSynchronizable: Bool { details.isSynchronizable ?? item?.isSynchronizable ?? false }
  /// The date of the last change.
  package var modificationDate: KeychainDate? { attributes?.modificationDate ?? details.modificationDate }
  /// Whether only a secret is stored (iOS 4), without a name or an owner, so that it cannot be restored.
  package var isSecretOnly: Bool { if case .backup(let backupItem) = source { backupItem.isSecretOnly } else { false } }
  /// Whether the item is unreadable because a key is not in memory.
  package var isLocked: Bool { details.isLocked }

  /// Returns whether the secrets of two items cannot be compared, because only one item's source contains secrets.
  func cannotCompareSecret(with other: KeychainEntry) -> Bool {
    !scope.includesSecret && other.item?.secret != nil || !other.scope.includesSecret && item?.secret != nil
  }

  /// Returns a copy of the entry with the digest of its data in a backup.
  package func stored(as fingerprint: ItemFingerprint?) -> KeychainEntry {
    var details = details
    details.fingerprint = fingerprint
    var result = self
    result.source = .other(content, details)
    return result
  }
}

extension UnlockedBackup {
  /// The entries of the backup's items.
  package var entries: [KeychainEntry] { items.map { entry(of: $0) } }

  /// Returns the entry of an item.
  ///
  /// - Parameter identity: The names of an item that cannot be decrypted, if they are known.
  package func entry(of backupItem: BackupItem, named identity: ItemDescriptor? = nil) -> KeychainEntry {
    KeychainEntry(backupItem, named: identity, reason: reason(of: backupItem))
  }
}

extension KeychainEntry {
  /// Creates an entry for an item of a backup.
  ///
  /// - Parameters:
  ///   - backupItem: The item.
  ///   - identity: Its names if it cannot be decrypted but they are known.
  ///   - reason: The reason why it cannot be decrypted.
  package init(_ backupItem: BackupItem, named identity: ItemDescriptor? = nil, reason: Reason?) {
    guard backupItem.item == nil else {
      self.init(opened: backupItem)
      return
    }
    let entry = KeychainEntry(
      index: backupItem.index, undecryptable: identity ?? ItemDescriptor(undecryptable: backupItem.kind),
      protection: backupItem.protection,
      persistentReference: backupItem.persistentReference, reason: reason)
    self = entry.stored(as: backupItem.fingerprint)
  }
}

extension KeychainDump {
  /// The entries of the dump's items.
  package var entries: [KeychainEntry] { items.map { KeychainEntry($0, of: self) } }
}

extension KeychainEntry {
  /// Creates an entry for an item of a dump.
  ///
  /// - Parameter row: The number of the item's row, if the dump is a database.
  package init(_ dumped: DumpedItem, of dump: KeychainDump, row: Int64? = nil) {
    let content: Content =
      switch dumped.content {
      case .open(let item): .item(item)
      case .attributesOnly(let item, let fault): .attributes(item, fault?.reason)
      case .undecryptable(let fault, _): .undecryptable(ItemDescriptor(undecryptable: dumped.kind), fault.reason)
      }
    self.init(
      content, at: RowReference(kind: dumped.kind, rowID: row ?? Int64(dumped.index)), index: dumped.index,
      dumped.protection, persistentReference: dumped.item.flatMap(Self.reference), detail: dumped.fault?.detail)
    if item != nil {
      scope = Scope(includesSecret: dumped.hasSecret, attributes: dump.recordedAttributes, hasWholeSeconds: true)
    }
  }

  private static func reference(of item: KeychainItem) -> [UInt8]? {
    item[.persistentReference]?.dataValue.flatMap { try? PersistentReference.uuid(item.kind, $0).serialized() }
  }
}
