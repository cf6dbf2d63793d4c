package import Basics
package import KeychainCrypto
package import KeychainFormats

/// The values that an added item gets: defaults for attributes that the caller omits, and attributes that no caller can
/// set.
///
/// Source: Apple `SecItemServer.c` (`_SecItemAdd`), `SecItemDb.c` (`s3dl_query_add`), `SecDbItem.c` (defaults).
package enum NewItemDefaults {
  /// Returns the default protection class. Certificates and the push service's items are always readable. All other
  /// items are readable only while the device is unlocked.
  package static func defaultProtection(kind: ItemKind, accessGroup: String) -> ProtectionClass {
    if accessGroup == "com.apple.apsd" { return .alwaysThisDeviceOnly }
    return kind == .certificate ? .always : .whenUnlocked
  }

  /// Returns an item ready to be added, with all defaults, dates and identifiers set.
  ///
  /// - Throws: `.parameter` if the item has no access group, an unknown protection class, or an access control although
  ///   it is synchronized; `.notAvailable` if no random bytes are available.
  package static func prepared(
    _ item: KeychainItem, now: KeychainDate, random: any RandomSource
  ) throws(KeychainRuleError) -> KeychainItem {
    var item = item
    item.unpack()
    try item.convertAttributes()
    guard let group = item.accessGroup else { throw KeychainRuleError(.parameter, "the item has no access group") }
    if item[.protection] == nil {
      item.protection = defaultProtection(kind: item.kind, accessGroup: group)
    } else if item.protection == nil {
      throw KeychainRuleError(.parameter, "the protection class is not known")
    }
    try rejectSynchronizedAccessControl(in: item)
    for definition in AttributeTable.definitions(of: item.kind) where item[definition.code] == nil {
      if let value = defaultValue(of: definition) { item[definition.code] = value }
    }
    item[.creationDate] = .date(now)
    item[.modificationDate] = .date(now)
    item[.tombstone] = .integer(item.isTombstone ? 1 : 0)
    item[.multiUser] = .data([])
    item[.uuid] = .string(try randomUUIDText(random))
    item[.persistentReference] = .data(try randomBytes(random, count: PersistentReference.uuidByteCount))
    return item
  }

  /// Throws `.parameter` if a synchronized item has an access control, because an access control keeps the item on its
  /// device.
  package static func rejectSynchronizedAccessControl(in item: KeychainItem) throws(KeychainRuleError) {
    if item.isSynchronizable, item[.accessControl] != nil {
      throw KeychainRuleError(.parameter, "a synchronized item cannot have an access control")
    }
  }

  /// Returns the default of an attribute that may not be NULL: 0, 2001-01-01, empty text, or empty data. Returns `nil`
  /// if the attribute may be NULL, is not part of the encrypted item, or is of a kind without a default.
  private static func defaultValue(of definition: AttributeDefinition) -> PropertyValue? {
    guard definition.flags.contains(.notNull), !definition.flags.isDisjoint(with: [.encrypted, .authenticated]) else {
      return nil
    }
    return switch definition.kind {
    case .number, .sync, .tomb: .integer(0)
    case .creationDate, .modificationDate, .date: .date(.reference)
    case .blob: .string("")
    case .data: .data([])
    case .rowID, .string, .encryptedData, .access, .accessControl, .useTombstone, .sha1, .primaryKey, .uuid: nil
    }
  }

  /// Returns an item with a UUID and a persistent reference. A missing UUID or reference is generated randomly.
  package static func identified(
    _ item: KeychainItem, random: any RandomSource
  ) throws(KeychainRuleError) -> KeychainItem {
    var item = item
    if item[.uuid]?.stringValue == nil { item[.uuid] = .string(try randomUUIDText(random)) }
    if item[.persistentReference] == nil {
      item[.persistentReference] = .data(try randomBytes(random, count: PersistentReference.uuidByteCount))
    }
    return item
  }

  /// Returns a random UUID, version 4, in upper case as Apple writes it (RFC 9562).
  package static func randomUUIDText(_ random: any RandomSource) throws(KeychainRuleError) -> String {
    var bytes = SIMD16(try randomBytes(random, count: 16))
    // The version in the high half of byte 6, and the variant in the two high bits of byte 8.
    bytes[6] = bytes[6] & 0x0F | 0x40
    bytes[8] = bytes[8] & 0x3F | 0x80
    return UUIDText.uppercase(bytes)
  }

  package static func randomBytes(_ random: any RandomSource, count: Int) throws(KeychainRuleError) -> [UInt8] {
    do {
      return try random.bytes(count)
    } catch {
      throw KeychainRuleError(error)
    }
  }
}
