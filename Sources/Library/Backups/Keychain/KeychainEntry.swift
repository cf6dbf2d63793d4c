package import Basics
package import KeychainFormats
package import KeychainRules
package import Keychains

/// An item of a keychain: the decrypted item, or the known properties of an item that cannot be decrypted.
///
/// Items of backups, devices, databases and dumps all have this type, so that they can be compared.
public struct KeychainEntry: Sendable {
  /// The position of the item in its keychain, from 0, or `nil` if it is unknown.
  package var index: Int?
  /// The parts of items that the item's keychain contains.
  package var scope = Scope()
  private var storage: Storage

  private enum Storage: Sendable {
    /// A decrypted item of a backup. Its properties are not stored again for the entry.
    case backup(BackupItem)
    /// Any other item.
    indirect case other(Content, Properties)
  }

  /// The decrypted parts of an item.
  package enum Content: Sendable {
    /// The decrypted item. It has no secret if the original has none, or if a search did not ask for it.
    case item(KeychainItem)
    /// The attributes without the secret, and the reason why the secret cannot be decrypted. The reason is `nil` if the
    /// keychain contains no secret for the item.
    case attributes(KeychainItem, Reason?)
    /// The known names of an item that cannot be decrypted, and the reason if it is known.
    case undecryptable(ItemDescriptor, Reason?)
  }

  /// The properties that are stored in addition to the content.
  private struct Properties: Sendable {
    let rowReference: RowReference
    let protection: ProtectionClass?
    var persistentReference: [UInt8]?
    var fingerprint: ItemFingerprint?
    var reasonDetail: String?
    /// Whether the item syncs, or `nil` if its attributes determine this.
    var isSynchronizable: Bool?
    /// The date of the last change in the item's row, for an item that cannot be decrypted.
    var modificationDate: KeychainDate?
    var isLocked = false
  }

  /// The parts of items that a keychain contains. For example, some dumps contain no secrets. A comparison ignores
  /// parts that one of the keychains cannot contain.
  package struct Scope: Sendable {
    /// The attributes that the keychain can contain, or `nil` if it can contain all.
    package var attributes: Set<AttributeCode>?
    /// Whether the keychain contains the item's secret, if the item has one.
    package var includesSecret = true
    /// Whether the keychain stores dates without fractions of a second.
    package var hasWholeSeconds = false

    package init(includesSecret: Bool = true, attributes: Set<AttributeCode>? = nil, hasWholeSeconds: Bool = false) {
      self.includesSecret = includesSecret
      self.attributes = attributes
      self.hasWholeSeconds = hasWholeSeconds
    }

    func includes(_ code: AttributeCode) -> Bool { attributes?.contains(code) ?? true }
  }

  private init(_ index: Int?, _ content: Content, _ properties: Properties) {
    self.index = index
    storage = .other(content, properties)
  }

  /// Creates an entry for a decrypted item of a list.
  ///
  /// - Parameters:
  ///   - index: The position in the list, from 0, or `nil` if it is unknown.
  ///   - item: The decrypted item.
  ///   - persistentReference: The persistent reference stored with the item, 12 or 20 bytes, or `nil` if it has none.
  ///   - protection: The protection class in the item's encrypted data, or `nil` to use the class in its attributes.
  package init(
    index: Int?, item: KeychainItem, persistentReference: [UInt8]? = nil, protection: ProtectionClass? = nil
  ) {
    self.init(
      index, .item(item),
      Properties(
        rowReference: RowReference(kind: item.kind, rowID: Int64(index ?? 0)),
        protection: protection ?? item.protection,
        persistentReference: persistentReference))
  }

  /// Creates an entry for an item of a list that cannot be decrypted.
  ///
  /// - Parameters:
  ///   - index: The position in the list, from 0, or `nil` if it is unknown.
  ///   - identity: The kind of the item, and its names if they are known.
  ///   - protection: The protection class, if it is known.
  ///   - persistentReference: The persistent reference stored with the item, 12 or 20 bytes, or `nil` if it has none.
  ///   - reason: The reason why the item cannot be decrypted, if it is known.
  package init(
    index: Int?, undecryptable identity: ItemDescriptor, protection: ProtectionClass?, persistentReference: [UInt8]?,
    reason: Reason?
  ) {
    self.init(
      index, .undecryptable(identity, reason),
      Properties(
        rowReference: RowReference(kind: identity.kind, rowID: Int64(index ?? 0)), protection: protection,
        persistentReference: persistentReference))
  }

  /// Creates an entry for a decrypted item of a backup.
  package init(decrypted backupItem: BackupItem) {
    index = backupItem.index
    storage = .backup(backupItem)
  }

  /// Creates an entry for a decrypted item that has a row in a table.
  ///
  /// - Parameters:
  ///   - item: The decrypted item.
  ///   - rowReference: The item's table and row number. In a backup, the row number is the item's position.
  ///   - index: The position of the item in its keychain, or `nil` if it is unknown.
  ///   - isSynchronizable: Whether the item syncs. By default, the item's attributes determine this.
  package init(_ item: KeychainItem, at rowReference: RowReference, index: Int? = nil, isSynchronizable: Bool? = nil) {
    self.init(
      index, .item(item),
      Properties(rowReference: rowReference, protection: item.protection, isSynchronizable: isSynchronizable))
  }

  /// Creates an entry for an item that cannot be decrypted, or only in part.
  ///
  /// - Parameters:
  ///   - content: The decrypted parts.
  ///   - rowReference: The item's table and row number.
  ///   - index: The position of the item in its keychain, or `nil` if it is unknown.
  ///   - protection: The protection class, if it is known.
  ///   - persistentReference: The persistent reference stored with the item, 12 or 20 bytes.
  ///   - reasonDetail: A description of what exactly is wrong with the item, in addition to the reason.
  package init(
    _ content: Content, at rowReference: RowReference, index: Int?, _ protection: ProtectionClass?,
    persistentReference: [UInt8]? = nil, reasonDetail: String? = nil
  ) {
    self.init(
      index, content,
      Properties(
        rowReference: rowReference, protection: protection, persistentReference: persistentReference,
        reasonDetail: reasonDetail))
  }

  /// Creates an entry for an item that a search on a device has found.
  package init(_ stored: StoredItem) {
    self.init(stored.item, at: stored.summary.reference, isSynchronizable: stored.summary.isSynchronizable)
  }

  /// Creates an entry for a row of a device, with the persistent reference that a backup would contain.
  package init(_ row: KeychainRow, index: Int? = nil) {
    let summary = row.summary
    let content: Content
    var protection: ProtectionClass? = summary.protection
    var reasonDetail: String?
    switch row.content {
    case .item(let item):
      content = .item(item)
      protection = item.protection
    case .fault(let fault):
      var reason = Reason.noClassKey
      if case .undecodable(let text) = fault {
        reason = .malformed
        reasonDetail = text
      }
      content = .undecryptable(ItemDescriptor(undecryptable: summary.kind, accessGroup: summary.accessGroup), reason)
    }
    self.init(
      index, content,
      Properties(
        rowReference: summary.reference, protection: protection,
        persistentReference: try? PersistentReference.uuid(summary.kind, summary.persistentReference).serialized(),
        reasonDetail: reasonDetail, isSynchronizable: summary.isSynchronizable,
        modificationDate: summary.modificationDate,
        isLocked: row.fault?.isPermanent == false))
  }

  /// Returns the entries of the items that a search has found, sorted by kind and then by row number, as in a backup.
  package static func entries(of result: QueryResult) -> [KeychainEntry] {
    let entries = result.items.map { KeychainEntry($0) } + result.undecodableRows.map { KeychainEntry($0) }
    return entries.sorted { (order($0.kind), $0.rowReference.rowID) < (order($1.kind), $1.rowReference.rowID) }
  }

  /// Returns the position of a kind in the order of a backup's tables.
  private static func order(_ kind: ItemKind) -> Int { ItemKind.allCases.firstIndex(of: kind) ?? 0 }

  // MARK: Properties

  /// The decrypted parts of the item.
  package var content: Content {
    switch storage {
    case .backup(let backupItem):
      backupItem.item.map { .item($0) } ?? .undecryptable(ItemDescriptor(undecryptable: backupItem.kind), nil)
    case .other(let content, _): content
    }
  }

  /// The stored properties, or the properties of the backup item.
  private var properties: Properties {
    switch storage {
    case .backup(let backupItem):
      Properties(
        rowReference: RowReference(kind: backupItem.kind, rowID: Int64(backupItem.index)),
        protection: backupItem.protection ?? backupItem.item?.protection,
        persistentReference: backupItem.persistentReference, fingerprint: backupItem.fingerprint)
    case .other(_, let properties): properties
    }
  }

  /// The decrypted item, or `nil` if the item or its secret cannot be decrypted.
  ///
  /// It has no secret if its keychain contains none for it.
  package var item: KeychainItem? {
    switch content {
    case .item(let item), .attributes(let item, nil): item
    case .attributes, .undecryptable: nil
    }
  }

  /// The readable part of the item: the complete item, or only its attributes if its secret cannot be decrypted.
  ///
  /// It is `nil` if no part can be decrypted.
  package var readablePart: KeychainItem? {
    switch content {
    case .item(let item), .attributes(let item, _): item
    case .undecryptable: nil
    }
  }

  /// Whether the keychain contains the item's secret, and it can be decrypted. Also `true` for an item without a
  /// secret.
  package var isSecretReadable: Bool { if case .item = content { true } else { false } }

  /// The reason why the item or its secret cannot be decrypted. `nil` if both are decrypted, if the keychain contains no
  /// secret, or if the reason is unknown.
  package var reason: Reason? {
    switch content {
    case .item: nil
    case .attributes(_, let reason), .undecryptable(_, let reason): reason
    }
  }

  /// Whether the item or its secret cannot be decrypted.
  var isEncrypted: Bool { item == nil }

  /// The kind of item.
  package var kind: ItemKind {
    switch storage {
    case .backup(let backupItem): backupItem.kind
    case .other(_, let properties): properties.rowReference.kind
    }
  }

  /// The kind and the known names of the item. Created on each access.
  package var identity: ItemDescriptor {
    switch content {
    case .item(let item), .attributes(let item, _): ItemDescriptor(item)
    case .undecryptable(let identity, _): identity
    }
  }

  /// The item's table and row number. In a backup, the row number is the item's position.
  package var rowReference: RowReference { properties.rowReference }
  /// The position of the item in its keychain, or the row number if the position is unknown.
  var position: Int { index ?? Int(rowReference.rowID) }
  /// The item's protection class, or `nil` if it is unknown.
  package var protection: ProtectionClass? { properties.protection }
  /// The persistent reference in the format of a backup, 12 or 20 bytes. The same item may have
  /// the same reference in a different keychain.
  package var persistentReference: [UInt8]? { properties.persistentReference }
  /// The digest of the item's stored data, if the item is from a backup.
  package var fingerprint: ItemFingerprint? { properties.fingerprint }
  /// A description of what exactly is wrong with the item, in addition to `reason`.
  package var reasonDetail: String? { properties.reasonDetail }
  /// Whether the item syncs.
  package var isSynchronizable: Bool { properties.isSynchronizable ?? item?.isSynchronizable ?? false }
  /// The date of the last change, or `nil` if it is unknown.
  package var modificationDate: KeychainDate? { readablePart?.modificationDate ?? properties.modificationDate }
  /// Whether the backup stores only the item's secret, as in iOS 4. Without a name and an owner, the item cannot be
  /// restored.
  package var isSecretOnly: Bool {
    if case .backup(let backupItem) = storage { backupItem.isSecretOnly } else { false }
  }
  /// Whether the item of a device cannot be decrypted because the key of its class is not available.
  package var isLocked: Bool { properties.isLocked }

  /// Returns whether the secrets of two items cannot be compared: one item has a secret, but the keychain of the other
  /// contains no secrets.
  func cannotCompareSecret(with other: KeychainEntry) -> Bool {
    !scope.includesSecret && other.item?.secret != nil || !other.scope.includesSecret && item?.secret != nil
  }

  /// Returns a copy of the entry with the given fingerprint.
  package func withFingerprint(_ fingerprint: ItemFingerprint?) -> KeychainEntry {
    var properties = properties
    properties.fingerprint = fingerprint
    var copy = self
    copy.storage = .other(content, properties)
    return copy
  }
}

extension UnlockedBackup {
  /// The entries of the backup's items.
  package var entries: [KeychainEntry] { items.map { entry(of: $0) } }

  /// Returns the entry of an item.
  ///
  /// - Parameters:
  ///   - backupItem: An item of this backup.
  ///   - identity: The item's names, if they are known although the item cannot be decrypted. Ignored for other items.
  package func entry(of backupItem: BackupItem, named identity: ItemDescriptor? = nil) -> KeychainEntry {
    KeychainEntry(backupItem, named: identity, reason: reason(of: backupItem))
  }
}

extension KeychainEntry {
  /// Creates an entry for an item of a backup.
  ///
  /// - Parameters:
  ///   - backupItem: The item.
  ///   - identity: The item's names, if they are known although the item cannot be decrypted. Ignored for other items.
  ///   - reason: The reason why the item cannot be decrypted, or `nil` if it is decrypted.
  package init(_ backupItem: BackupItem, named identity: ItemDescriptor? = nil, reason: Reason?) {
    guard backupItem.item == nil else {
      self.init(decrypted: backupItem)
      return
    }
    let entry = KeychainEntry(
      index: backupItem.index, undecryptable: identity ?? ItemDescriptor(undecryptable: backupItem.kind),
      protection: backupItem.protection,
      persistentReference: backupItem.persistentReference, reason: reason)
    self = entry.withFingerprint(backupItem.fingerprint)
  }
}

extension KeychainDump {
  /// The entries of the dump's items.
  package var entries: [KeychainEntry] { items.map { KeychainEntry($0, of: self) } }
}

extension KeychainEntry {
  /// Creates an entry for an item of a dump.
  ///
  /// - Parameters:
  ///   - dumpedItem: The item.
  ///   - dump: The dump that contains the item.
  ///   - row: The number of the item's row, if the dump is a database.
  package init(_ dumpedItem: DumpedItem, of dump: KeychainDump, row: Int64? = nil) {
    let content: Content =
      switch dumpedItem.content {
      case .open(let item): .item(item)
      case .attributesOnly(let item, let fault): .attributes(item, fault?.reason)
      case .undecryptable(let fault, _): .undecryptable(ItemDescriptor(undecryptable: dumpedItem.kind), fault.reason)
      }
    self.init(
      content, at: RowReference(kind: dumpedItem.kind, rowID: row ?? Int64(dumpedItem.index)), index: dumpedItem.index,
      dumpedItem.protection, persistentReference: dumpedItem.item.flatMap(Self.serializedReference),
      reasonDetail: dumpedItem.fault?.detail)
    if item != nil {
      scope = Scope(includesSecret: dumpedItem.hasSecret, attributes: dump.recordedAttributes, hasWholeSeconds: true)
    }
  }

  /// Returns the persistent reference among an item's attributes, in the format of a backup.
  ///
  /// - Returns: The reference, or `nil` if the item has none or it is invalid.
  private static func serializedReference(of item: KeychainItem) -> [UInt8]? {
    item[.persistentReference]?.dataValue.flatMap { try? PersistentReference.uuid(item.kind, $0).serialized() }
  }
}
