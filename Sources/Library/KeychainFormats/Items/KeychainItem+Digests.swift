public import Basics

extension KeychainItem {
  /// The dictionary whose SHA-1 is the item's primary-key digest and whose SHA-256 gives its derived UUID.
  ///
  /// All attributes flagged P. An absent one that may not be absent counts with its default; an absent `vwht`, `tkid`
  /// or `ggrp` is left out. Dates count by their seconds. Source: Apple `SecDbItem.c` (`SecDbItemCopyPrimaryKey`).
  /// - Throws: `.unencodable` for a value DER has no form for.
  public func primaryKeyEncoding() throws(FormatError) -> [UInt8] {
    let encoded = try ItemEncoder(keepsDateText: false).encode(
      attributes: attributesWithDefaults(flagged: .primaryKey), secrets: [:])
    return encoded.withBytes { Array($0) }
  }

  /// The dictionary whose SHA-1 is the item's stored digest (`sha1`): all attributes flagged H, the secret among them.
  ///
  /// Source: Apple `SecDbItem.c` (`SecDbItemGetSHA1`).
  /// - Throws: `.unencodable` for a value DER has no form for.
  public func digestEncoding() throws(FormatError) -> SensitiveBytes {
    let secrets = self.secrets.filter { code, _ in
      AttributeTable.definition(of: code, in: kind)?.flags.contains(.inDigest) ?? false
    }
    return try ItemEncoder(keepsDateText: false).encode(
      attributes: attributesWithDefaults(flagged: .inDigest), secrets: secrets)
  }

  private func attributesWithDefaults(flagged flag: AttributeFlags) -> [(key: AttributeCode, value: PropertyValue)] {
    AttributeTable.definitions(of: kind).compactMap { definition in
      guard definition.flags.contains(flag), !definition.flags.contains(.returnedAsData) else { return nil }
      return (attributes[definition.code] ?? definition.defaultValue).map { (definition.code, $0) }
    }
  }
}

extension AttributeDefinition {
  /// What counts where an attribute that may not be absent is; `nil` where it may be.
  ///
  /// Source: Apple `SecDbItem.c` (`SecDbAttrCopyDefaultValue`).
  public var defaultValue: PropertyValue? {
    guard flags.contains(.notNull) else { return nil }
    return switch kind {
    case .number, .sync, .tomb, .useTombstone, .rowID: .integer(0)
    case .creationDate, .modificationDate, .date: .date(.reference)
    case .blob, .data, .encryptedData, .sha1, .primaryKey, .uuid, .accessControl: .data([])
    case .string, .access: .string("")
    }
  }
}
