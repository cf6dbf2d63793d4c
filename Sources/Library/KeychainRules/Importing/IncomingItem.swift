import Basics
package import KeychainFormats

/// An item of a backup as a restore stores it if nothing conflicts with it.
///
/// The item belongs to the single user, or still to the user of the system keychain. It is synchronized if it is one of
/// Safari's old passwords. Its persistent reference is normalized. A missing UUID or reference is generated when the
/// item is stored.
///
/// Source: Apple `SecItemDb.c` (`SecServerImportItem`).
package struct IncomingItem: Sendable {
  /// The item as it will be stored.
  package let item: KeychainItem

  /// The user of the system keychain. Items of this user keep their owner; all other items go to the single user.
  ///
  /// Source: Apple `SecItemServer.c` (`SecMUSRGetSystemKeychainUUID`).
  package static let systemKeychainUser: [UInt8] = [
    0xF6, 0x23, 0xAE, 0x5C, 0xCC, 0x81, 0x4C, 0xAC, 0x8A, 0xD4, 0xF0, 0x01, 0x3F, 0x31, 0x35, 0x11,
  ]

  /// The maximum size of an item's dictionary in bytes. It leaves 4096 bytes of a blob for everything that storing the
  /// item adds.
  package static let maximumByteCount = ItemBlob.maximumByteCount - 4096

  /// Creates an item of a backup. An access control among its attributes is dropped, because no backup contains one.
  ///
  /// - Parameters:
  ///   - item: The decrypted item.
  ///   - reference: The reference beside the item in the backup: the kind's name in four bytes, then a UUID. A reference
  ///     in another format is ignored. The item's own reference is then used if it has 16 bytes.
  /// - Throws: `.decode` if the item has no access group, no known protection class, a tombstone flag that is neither 0
  ///   nor 1, or a value that its attribute or a blob cannot have. Such an item is skipped; the others are restored.
  package init(_ item: KeychainItem, persistentReference reference: [UInt8]? = nil) throws(KeychainRuleError) {
    self = try Keyed(item, persistentReference: reference).incoming
  }

  /// Creates an item of this device that was set aside during a restore; its access control stays.
  ///
  /// - Throws: `.decode` under the same conditions as for an item of a backup.
  package init(preserved item: KeychainItem) throws(KeychainRuleError) {
    self = try Keyed(preserved: item).incoming
  }

  /// Creates an item of a backup that was validated before. Whether a blob can store it is not checked again.
  ///
  /// - Throws: `.decode` under the conditions of `init(_:persistentReference:)`, except for a value that a blob cannot
  ///   have.
  package init(
    validated item: KeychainItem, persistentReference reference: [UInt8]?
  ) throws(KeychainRuleError) {
    self.item = try Keyed.normalized(Keyed.withoutAccessControl(item), reference: reference)
  }

  fileprivate init(normalized item: KeychainItem) { self.item = item }

  /// An item with the primary key of the row that it may conflict with.
  package struct Keyed: Sendable {
    /// The item.
    package let incoming: IncomingItem
    /// The key of the row that the item would occupy. It needs as much memory as the item itself, so a caller keeps it
    /// only for the lookup.
    package let primaryKey: PrimaryKey

    /// Creates an item of a backup, under the same conditions as `IncomingItem.init(_:persistentReference:)`.
    package init(_ item: KeychainItem, persistentReference reference: [UInt8]? = nil) throws(KeychainRuleError) {
      try self.init(normalizing: Self.withoutAccessControl(item), reference: reference)
    }

    /// Creates an item of this device that was set aside, under the same conditions as `IncomingItem.init(preserved:)`.
    package init(preserved item: KeychainItem) throws(KeychainRuleError) {
      try self.init(normalizing: item, reference: nil)
    }
  }

  /// Returns the SHA-1 of the item's digest encoding, which decides a conflict at equal dates.
  ///
  /// It is computed on each call, because most items conflict with nothing.
  ///
  /// - Throws: `.notAvailable` if OpenSSL has no SHA-1.
  package func digest() throws(KeychainRuleError) -> [UInt8] { try item.storedDigest() }
}

extension IncomingItem.Keyed {
  private init(normalizing item: KeychainItem, reference: [UInt8]?) throws(KeychainRuleError) {
    let normalized = try Self.normalized(item, reference: reference)
    primaryKey = try Self.reportingMalformed { () throws(KeychainRuleError) in
      try Self.validate(normalized)
      return try PrimaryKey(of: normalized)
    }
    incoming = IncomingItem(normalized: normalized)
  }

  fileprivate static func withoutAccessControl(_ item: KeychainItem) -> KeychainItem {
    guard item[.accessControl] != nil else { return item }
    var item = item
    item[.accessControl] = nil
    return item
  }

  /// Returns an item as it is stored if nothing conflicts with it. An item that needs no change keeps its storage.
  fileprivate static func normalized(
    _ item: KeychainItem, reference: [UInt8]?
  ) throws(KeychainRuleError) -> KeychainItem {
    try reportingMalformed { () throws(KeychainRuleError) in
      var normalized = item
      normalized.unpack()
      try rejectInvalidTombstoneFlag(of: normalized)
      var isChanged = try normalized.convertAttributes()
      func set(_ code: AttributeCode, _ value: PropertyValue?) {
        guard normalized[code] != value else { return }
        normalized[code] = value
        isChanged = true
      }
      guard normalized.accessGroup != nil else { throw KeychainRuleError(.decode, "the item has no access group") }
      guard normalized.protection != nil else { throw KeychainRuleError(.decode, "the item has no protection class") }
      if normalized[.multiUser] != .data(IncomingItem.systemKeychainUser) { set(.multiUser, .data([])) }
      set(.persistentReference, persistentReference(beside: reference, inside: normalized).map { .data($0) })
      if SyncInference.appliesTo(normalized) { set(.synchronizable, .integer(1)) }
      guard isChanged else { return item }
      if item.isPacked { normalized.pack() }
      return normalized
    }
  }

  /// Rejects a tombstone flag that is neither 0 nor 1. An item with such a flag is not a tombstone, but searches would
  /// not find it.
  private static func rejectInvalidTombstoneFlag(of item: KeychainItem) throws(KeychainRuleError) {
    guard let flag = item[.tombstone], flag != .null, ![0, 1].contains(flag.integerValue) else { return }
    throw KeychainRuleError(.decode, "its tombstone flag (tomb) is not 0 or 1")
  }

  /// Calls a closure and reports a value that an attribute cannot have as a malformed item (`.decode`).
  private static func reportingMalformed<Value>(
    _ body: () throws(KeychainRuleError) -> Value
  ) throws(KeychainRuleError) -> Value {
    do throws(KeychainRuleError) {
      return try body()
    } catch {
      throw KeychainRuleError(error.code == .parameter ? .decode : error.code, error.reason)
    }
  }

  /// Checks that an item can be stored, before a transaction begins. Otherwise, one bad item would undo the complete
  /// restore.
  ///
  /// The attributes are already converted. An infinite date, which no column can store, is rejected here, because it
  /// has no encoding.
  private static func validate(_ item: KeychainItem) throws(KeychainRuleError) {
    let plain = withoutAccessControl(item)
    guard !plain.certainlyEncodes(within: IncomingItem.maximumByteCount) else { return }
    let byteCount: Int
    do {
      byteCount = try plain.derDictionary().count
      _ = try plain.digestEncoding()
    } catch {
      throw KeychainRuleError(.decode, error.reason)
    }
    guard byteCount <= IncomingItem.maximumByteCount else {
      throw KeychainRuleError(
        .decode, "the item has \(byteCount) bytes; the limit is \(IncomingItem.maximumByteCount)")
    }
  }

  /// Returns the 16 bytes of the reference beside the item in the backup, or of the item's own reference; `nil` if
  /// neither has the right format.
  private static func persistentReference(beside reference: [UInt8]?, inside item: KeychainItem) -> [UInt8]? {
    if let reference, case .uuid(item.kind, let bytes)? = try? PersistentReference(parsing: reference) { return bytes }
    guard let ownReference = item[.persistentReference]?.dataValue,
      ownReference.count == PersistentReference.uuidByteCount
    else { return nil }
    return ownReference
  }
}

/// Decides which items a restore flags as synchronized although the backup does not.
package enum SyncInference {
  /// Returns whether an item is one of Safari's passwords from before synchronization existed. Such an item is an
  /// internet password in the access group of the network layer. It is not a shared copy, and its server, protocol and
  /// authentication type are text.
  ///
  /// Source: Apple `SecItemDb.c` (`SecItemImportInferSyncable`).
  package static func appliesTo(_ item: KeychainItem) -> Bool {
    item.kind == .internetPassword && item.accessGroup == "com.apple.cfnetwork"
      && item[.server]?.stringValue != nil && item[.protocolType]?.stringValue != nil
      && item[.authenticationType]?.stringValue != nil && (item[.sharingGroup]?.stringValue ?? "").isEmpty
  }
}
