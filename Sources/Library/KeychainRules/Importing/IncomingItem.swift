import Basics
public import KeychainFormats

/// An item of a backup as a restore would store it where nothing is in its way: pure, so that a plan can be made of it.
///
/// It belongs to the single user, it is synchronized if it is one of Safari's old passwords, and its persistent
/// reference is settled. What is missing (UUID, reference) is drawn when it is stored.
/// Source: Apple `SecItemDb.c` (`SecServerImportItem`).
public struct IncomingItem: Sendable {
  /// The item as it would be stored.
  public let item: KeychainItem

  /// The user that stays what it is; every other view becomes the single user's.
  ///
  /// Source: Apple `SecItemServer.c` (`SecMUSRGetSystemKeychainUUID`).
  public static let systemKeychainUser: [UInt8] = [
    0xF6, 0x23, 0xAE, 0x5C, 0xCC, 0x81, 0x4C, 0xAC, 0x8A, 0xD4, 0xF0, 0x01, 0x3F, 0x31, 0x35, 0x11,
  ]

  /// How many bytes an item's dictionary may have, so that it fits into a blob with all that storing it adds.
  public static let maximumByteCount = ItemBlob.maximumByteCount - 4096

  /// An item of a backup. An access control among its attributes does not count: no backup holds one.
  ///
  /// - Parameters:
  ///   - item: The item as it opened.
  ///   - reference: The bytes that stand beside the item in the backup. A reference of 20 bytes, this kind's name and a
  ///     UUID, counts; every other is ignored, as is an inner one that is not 16 bytes.
  /// - Throws: `.decode` where the item has no access group, no known protection class, a mark of a deleted item that is
  ///   neither 0 nor 1, a value that its attribute cannot have or a blob cannot hold: such an item is left out, the others are restored.
  public init(_ item: KeychainItem, persistentReference reference: [UInt8]? = nil) throws(KeychainRuleError) {
    self = try Keyed(item, persistentReference: reference).incoming
  }

  /// An item of this device that was kept aside during a restore; its access control stays.
  ///
  /// - Throws: As for an item of a backup.
  public init(preserved item: KeychainItem) throws(KeychainRuleError) {
    self = try Keyed(preserved: item).incoming
  }

  /// An item of a backup of which one was made before: that it can be stored is known, and is not looked at again.
  ///
  /// - Throws: As for one that is looked at, but for a value that a blob cannot hold.
  package init(
    again item: KeychainItem, persistentReference reference: [UInt8]?
  ) throws(KeychainRuleError) {
    self.item = try Keyed.settled(Keyed.withoutAccessControl(item), reference: reference)
  }

  fileprivate init(settled item: KeychainItem) { self.item = item }

  /// One with what it collides with a row by, for whoever looks for that row.
  public struct Keyed: Sendable {
    /// The item itself.
    public let incoming: IncomingItem
    /// The key of the row that it takes: as long as the rest of an item, so that it is not held for longer than it is
    /// looked for.
    public let primaryKey: PrimaryKey

    /// An item of a backup, as `IncomingItem` takes it, and under the same conditions.
    public init(_ item: KeychainItem, persistentReference reference: [UInt8]? = nil) throws(KeychainRuleError) {
      try self.init(settling: Self.withoutAccessControl(item), reference: reference)
    }

    /// An item of this device that was kept aside, as `IncomingItem` takes it, and under the same conditions.
    public init(preserved item: KeychainItem) throws(KeychainRuleError) {
      try self.init(settling: item, reference: nil)
    }
  }

  /// SHA-1 of the item's digest encoding, which a conflict at equal dates is decided by. Not kept: most meet nothing.
  ///
  /// - Throws: `.notAvailable` where OpenSSL has no SHA-1; that the item has an encoding is known.
  public func digest() throws(KeychainRuleError) -> [UInt8] { try item.storedDigest() }
}

extension IncomingItem.Keyed {
  private init(settling item: KeychainItem, reference: [UInt8]?) throws(KeychainRuleError) {
    let settled = try Self.settled(item, reference: reference)
    primaryKey = try Self.malformed { () throws(KeychainRuleError) in
      try Self.checkStorable(settled)
      return try PrimaryKey(of: settled)
    }
    incoming = IncomingItem(settled: settled)
  }

  fileprivate static func withoutAccessControl(_ item: KeychainItem) -> KeychainItem {
    guard item[.accessControl] != nil else { return item }
    var item = item
    item[.accessControl] = nil
    return item
  }

  /// An item as it is stored where nothing is in its way; the very same one where nothing of it changes.
  fileprivate static func settled(
    _ item: KeychainItem, reference: [UInt8]?
  ) throws(KeychainRuleError) -> KeychainItem {
    try malformed { () throws(KeychainRuleError) in
      var settled = item
      settled.unpack()
      // With any other value it is no item that a search finds, and no deletion that anybody made.
      if let mark = settled[.tombstone], mark != .null, ![0, 1].contains(mark.integerValue) {
        throw KeychainRuleError(.decode, "its tombstone flag (tomb) is not 0 or 1")
      }
      var isChanged = try settled.convertAttributes()
      func set(_ code: AttributeCode, _ value: PropertyValue?) {
        guard settled[code] != value else { return }
        settled[code] = value
        isChanged = true
      }
      guard settled.accessGroup != nil else { throw KeychainRuleError(.decode, "the item has no access group") }
      guard settled.protection != nil else { throw KeychainRuleError(.decode, "the item has no protection class") }
      if settled[.multiUser] != .data(IncomingItem.systemKeychainUser) { set(.multiUser, .data([])) }
      set(.persistentReference, persistentReference(beside: reference, inside: settled).map { .data($0) })
      if SyncInference.appliesTo(settled) { set(.synchronizable, .integer(1)) }
      // What stays as it was is there once, and what changed is kept as the item was.
      if isChanged, item.isPacked { settled.pack() }
      return isChanged ? settled : item
    }
  }

  /// A value that an attribute cannot have makes an item of a backup malformed.
  private static func malformed<Value>(
    _ body: () throws(KeychainRuleError) -> Value
  ) throws(KeychainRuleError) -> Value {
    do throws(KeychainRuleError) {
      return try body()
    } catch {
      throw KeychainRuleError(error.code == .parameter ? .decode : error.code, error.reason)
    }
  }

  /// What cannot be stored has to show before a transaction begins, or one item would undo the restore of all.
  ///
  /// Its attributes were converted to what their columns take; a date without end, which none takes, has no encoding.
  private static func checkStorable(_ item: KeychainItem) throws(KeychainRuleError) {
    var plain = item
    if plain[.accessControl] != nil { plain[.accessControl] = nil }
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

  private static func persistentReference(beside reference: [UInt8]?, inside item: KeychainItem) -> [UInt8]? {
    if let reference, case .uuid(item.kind, let bytes)? = try? PersistentReference(parsing: reference) { return bytes }
    guard let inner = item[.persistentReference]?.dataValue, inner.count == 16 else { return nil }
    return inner
  }
}
