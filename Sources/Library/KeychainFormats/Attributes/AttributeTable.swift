import Basics

/// A kind of attribute, which determines how values are converted, stored and compared.
///
/// Source: Apple `SecItemSchema.c` (attribute kinds) and `SecDbItem.c` (conversions).
package enum AttributeKind: String, Sendable {
  /// The row number; the item's creation date, its modification date, and any other date (`KeychainDate`).
  case rowID, creationDate, modificationDate, date
  /// A string, data or number, stored unchanged.
  case blob
  /// Bytes; text and numbers are converted to bytes.
  case data
  /// Text, stored unchanged.
  case string
  /// A whole number; text that is not a canonical 32-bit decimal stays text.
  case number
  /// The column `data` of the encrypted item; not an attribute of a decrypted item.
  case encryptedData
  /// The code of a protection class.
  case access
  /// The access control of an item: the operations with their constraints. No backup contains an item with one.
  case accessControl
  /// Flags that are 0 or 1: whether the item is synchronized, is a tombstone, or leaves a tombstone when it is deleted.
  case sync, tomb, useTombstone
  /// The digest of the item, 20 bytes, computed again whenever the item changes.
  case sha1
  /// The digest of the primary key, which is computed and never stored.
  case primaryKey
  /// 0 or 16 bytes.
  case uuid
}

/// The roles of an attribute. The letters are those of Apple's schema source.
package struct AttributeFlags: OptionSet, Sendable, Hashable {
  package let rawValue: UInt32
  package init(rawValue: UInt32) { self.rawValue = rawValue }

  /// P: part of the primary key.
  package static let primaryKey = AttributeFlags(rawValue: 1 << 0)
  /// L: has a column.
  package static let column = AttributeFlags(rawValue: 1 << 1)
  /// I: has an index.
  package static let indexed = AttributeFlags(rawValue: 1 << 2)
  /// S: the column stores the SHA-1 of the value.
  package static let hashedColumn = AttributeFlags(rawValue: 1 << 3)
  /// A: returned with the attributes.
  package static let returnedAsAttribute = AttributeFlags(rawValue: 1 << 4)
  /// D: secret, returned only with the data.
  package static let returnedAsData = AttributeFlags(rawValue: 1 << 5)
  /// R: returned as part of a reference.
  package static let returnedAsReference = AttributeFlags(rawValue: 1 << 6)
  /// C: inside the encrypted blob.
  package static let encrypted = AttributeFlags(rawValue: 1 << 7)
  /// H: included in the item's digest (`sha1`).
  package static let inDigest = AttributeFlags(rawValue: 1 << 8)
  /// B: marked for backup in Apple's source; unused there.
  package static let backup = AttributeFlags(rawValue: 1 << 9)
  /// Z: an absent value is treated as 0.
  package static let defaultsToZero = AttributeFlags(rawValue: 1 << 10)
  /// E: an absent value is treated as empty.
  package static let defaultsToEmpty = AttributeFlags(rawValue: 1 << 11)
  /// N: never NULL.
  package static let notNull = AttributeFlags(rawValue: 1 << 12)
  /// U: on a device, authenticated with the blob; in a backup, stored in the item's dictionary.
  package static let authenticated = AttributeFlags(rawValue: 1 << 13)

  /// Creates flags from the letters of Apple's schema source; other letters are ignored.
  init(letters: String) {
    let meaning: [Character: AttributeFlags] = [
      "P": .primaryKey, "L": .column, "I": .indexed, "S": .hashedColumn, "A": .returnedAsAttribute,
      "D": .returnedAsData, "R": .returnedAsReference, "C": .encrypted, "H": .inDigest, "B": .backup,
      "Z": .defaultsToZero, "E": .defaultsToEmpty, "N": .notNull, "U": .authenticated,
    ]
    self = letters.reduce(into: []) { flags, letter in flags.formUnion(meaning[letter] ?? []) }
  }
}

/// The attributes of each kind of item, in the order of the database's columns (schema 12.11).
///
/// The schema, the blobs, the digests and the queries are all derived from this table, so a new attribute is a new row
/// here. KeychainServices declares Apple's constant for it (`AttributeConstants.swift`).
///
/// Source: Apple `SecItemSchema.c` of Security-61901 (2025).
package enum AttributeTable {
  /// Returns all attributes of a kind: first those with a column, in column order, then those without.
  package static func definitions(of kind: ItemKind) -> [AttributeDefinition] {
    switch kind {
    case .genericPassword: genericPassword
    case .internetPassword: internetPassword
    case .certificate: certificate
    case .key: key
    }
  }

  /// Returns the definition of an attribute, or `nil` if the kind does not have it.
  package static func definition(of code: AttributeCode, in kind: ItemKind) -> AttributeDefinition? {
    byCode[kind]?[code]
  }

  /// Returns the attribute with a name that a user typed, or `nil` if the kind does not have it. The name is a code or
  /// one of Apple's constants, such as `kSecAttrAccount`.
  package static func definition(named name: String, in kind: ItemKind) -> AttributeDefinition? {
    definitions(of: kind).first { $0.code.rawValue == name || $0.constantName == name }
  }

  /// Returns the codes with the flag D. Comparing so few codes is faster than hashing.
  static func secretCodes(of kind: ItemKind) -> [AttributeCode] {
    switch kind {
    case .genericPassword: genericPasswordSecrets
    case .internetPassword: internetPasswordSecrets
    case .certificate: certificateSecrets
    case .key: keySecrets
    }
  }

  private static let genericPasswordSecrets = secrets(in: genericPassword)
  private static let internetPasswordSecrets = secrets(in: internetPassword)
  private static let certificateSecrets = secrets(in: certificate)
  private static let keySecrets = secrets(in: key)

  private static func secrets(in definitions: [AttributeDefinition]) -> [AttributeCode] {
    definitions.filter { $0.flags.contains(.returnedAsData) }.map(\.code)
  }

  private static let byCode: [ItemKind: [AttributeCode: AttributeDefinition]] = Dictionary(
    uniqueKeysWithValues: ItemKind.allCases.map { kind in
      (kind, Dictionary(uniqueKeysWithValues: definitions(of: kind).map { ($0.code, $0) }))
    })

  private static func row(
    _ code: String, _ kind: AttributeKind, _ letters: String, _ constantName: String? = nil
  ) -> AttributeDefinition {
    AttributeDefinition(
      code: AttributeCode(rawValue: code), kind: kind, flags: AttributeFlags(letters: letters),
      constantName: constantName)
  }

  private static let head: [AttributeDefinition] = [
    row("rowid", .rowID, "LRB"),
    row("cdat", .creationDate, "LACH", "kSecAttrCreationDate"),
    row("mdat", .modificationDate, "LACH", "kSecAttrModificationDate"),
  ]

  /// Returns the first attributes of both kinds of password. Only the alias of internet passwords has an index.
  private static func password(aliasLetters: String) -> [AttributeDefinition] {
    [
      row("desc", .blob, "LSACH", "kSecAttrDescription"),
      row("icmt", .blob, "LSACH", "kSecAttrComment"),
      row("crtr", .number, "LACH", "kSecAttrCreator"),
      row("type", .number, "LIACH", "kSecAttrType"),
      row("scrp", .number, "LACH", "kSecAttrScriptCode"),
      row("labl", .blob, "LSACH", "kSecAttrLabel"),
      row("alis", .blob, aliasLetters, "kSecAttrAlias"),
      row("invi", .number, "LACH", "kSecAttrIsInvisible"),
      row("nega", .number, "LACH", "kSecAttrIsNegative"),
      row("cusi", .number, "LACH", "kSecAttrHasCustomIcon"),
      row("prot", .blob, "LSACH"),
      row("acct", .blob, "PLISACHEN", "kSecAttrAccount"),
    ]
  }

  private static let genericPassword: [AttributeDefinition] =
    head + password(aliasLetters: "LSACH") + [
      row("svce", .blob, "PLISACHEN", "kSecAttrService"),
      row("gena", .blob, "LSACH", "kSecAttrGeneric"),
    ] + tail

  private static let internetPassword: [AttributeDefinition] =
    head + password(aliasLetters: "LISACH") + [
      row("sdmn", .blob, "PLISACHEN", "kSecAttrSecurityDomain"),
      row("srvr", .blob, "PLISACHEN", "kSecAttrServer"),
      row("ptcl", .number, "PLIACHZN", "kSecAttrProtocol"),
      row("atyp", .blob, "PLISACHEN", "kSecAttrAuthenticationType"),
      row("port", .number, "PLIACHZN", "kSecAttrPort"),
      row("path", .blob, "PLISACHEN", "kSecAttrPath"),
    ] + tail + [
      row("binn", .data, "DC", "kSecDataInetExtraNotes"),
      row("bini", .data, "DC", "kSecDataInetExtraHistory"),
      row("bin0", .data, "DC", "kSecDataInetExtraClientDefined0"),
      row("bin1", .data, "DC", "kSecDataInetExtraClientDefined1"),
      row("bin2", .data, "DC", "kSecDataInetExtraClientDefined2"),
      row("bin3", .data, "DC", "kSecDataInetExtraClientDefined3"),
    ]

  private static let certificate: [AttributeDefinition] =
    head + [
      row("ctyp", .number, "PLIACHZN", "kSecAttrCertificateType"),
      row("cenc", .number, "LACH", "kSecAttrCertificateEncoding"),
      row("labl", .blob, "LSACH", "kSecAttrLabel"),
      row("alis", .blob, "LISACH", "kSecAttrAlias"),
      row("subj", .data, "LISACH", "kSecAttrSubject"),
      row("issr", .data, "PLISACHEN", "kSecAttrIssuer"),
      row("slnr", .data, "PLISACHEN", "kSecAttrSerialNumber"),
      row("skid", .data, "LISACH", "kSecAttrSubjectKeyID"),
      row("pkhh", .data, "LIACH", "kSecAttrPublicKeyHash"),
    ] + tail

  private static let key: [AttributeDefinition] =
    head + [
      row("kcls", .number, "PLISACHZN", "kSecAttrKeyClass"),
      row("labl", .blob, "LSACH", "kSecAttrLabel"),
      row("alis", .blob, "LISACH", "kSecAttrAlias"),
      row("perm", .number, "LACH", "kSecAttrIsPermanent"),
      row("priv", .number, "LACH", "kSecAttrIsPrivate"),
      row("modi", .number, "LACH", "kSecAttrIsModifiable"),
      row("klbl", .data, "PLIACHEN", "kSecAttrApplicationLabel"),
      row("atag", .blob, "PLISACHEN", "kSecAttrApplicationTag"),
      row("crtr", .number, "PLIACHZN", "kSecAttrKeyCreator"),
      row("type", .number, "PLIACHZN", "kSecAttrKeyType"),
      row("bsiz", .number, "PLIACHZN", "kSecAttrKeySizeInBits"),
      row("esiz", .number, "PLIACHZN", "kSecAttrEffectiveKeySize"),
      row("sdat", .date, "PLIACHZN", "kSecAttrStartDate"),
      row("edat", .date, "PLIACHZN", "kSecAttrEndDate"),
      row("sens", .number, "LACH", "kSecAttrIsSensitive"),
      row("asen", .number, "LACH", "kSecAttrWasAlwaysSensitive"),
      row("extr", .number, "LACH", "kSecAttrIsExtractable"),
      row("next", .number, "LACH", "kSecAttrWasNeverExtractable"),
      row("encr", .number, "LIACH", "kSecAttrCanEncrypt"),
      row("decr", .number, "LIACH", "kSecAttrCanDecrypt"),
      row("drve", .number, "LIACH", "kSecAttrCanDerive"),
      row("sign", .number, "LIACH", "kSecAttrCanSign"),
      row("vrfy", .number, "LIACH", "kSecAttrCanVerify"),
      row("snrc", .number, "LACH", "kSecAttrCanSignRecover"),
      row("vyrc", .number, "LACH", "kSecAttrCanVerifyRecover"),
      row("wrap", .number, "LIACH", "kSecAttrCanWrap"),
      row("unwp", .number, "LIACH", "kSecAttrCanUnwrap"),
    ] + tail

  /// The columns that every kind has, after the kind's own columns.
  private static let tailColumns: [AttributeDefinition] = [
    row("data", .encryptedData, "LB"),
    row("agrp", .string, "PLAHNU", "kSecAttrAccessGroup"),
    row("pdmn", .access, "LACH", "kSecAttrAccessible"),
    row("sync", .sync, "PLAHZNU", "kSecAttrSynchronizable"),
    row("tomb", .tomb, "LHZNU", "kSecAttrTombstone"),
    row("sha1", .sha1, "LIAR", "kSecAttrSHA1"),
    row("vwht", .string, "PLIAHU", "kSecAttrSyncViewHint"),
    row("tkid", .string, "PLIAHU", "kSecAttrTokenID"),
    row("musr", .uuid, "PLNU", "kSecAttrMultiUser"),
    row("UUID", .string, "LIU", "kSecAttrUUID"),
    row("sysb", .number, "LACHZ", "kSecAttrSysBound"),
    row("pcss", .number, "LACH", "kSecAttrPCSPlaintextServiceIdentifier"),
    row("pcsk", .blob, "LACH", "kSecAttrPCSPlaintextPublicKey"),
    row("pcsi", .blob, "LACH", "kSecAttrPCSPlaintextPublicIdentity"),
    row("persistref", .uuid, "LINU", "kSecAttrPersistentReference"),
    row("clip", .number, "LZN", "kSecAttrAppClipItem"),
    row("ggrp", .string, "PLIAHU", "kSecAttrSharingGroup"),
  ]

  /// Attributes without a column.
  private static let virtual: [AttributeDefinition] = [
    row("v_Data", .data, "DCH", "kSecValueData"),
    row("v_pk", .primaryKey, ""),
    row("accc", .accessControl, "A", "kSecAttrAccessControl"),
    row("u_Tomb", .useTombstone, ""),
  ]

  private static let tail: [AttributeDefinition] = tailColumns + virtual
}

/// An attribute of one kind of item.
package struct AttributeDefinition: Sendable, Hashable {
  /// The code, as in the column and the blob.
  package let code: AttributeCode
  /// The kind, which determines how values are converted, stored and compared.
  package let kind: AttributeKind
  /// The roles of the attribute, such as being part of the primary key, the blob or the digest.
  package let flags: AttributeFlags
  /// The name in Apple's headers, or `nil` if there is none.
  package let constantName: String?
}

extension AttributeDefinition {
  /// The attribute's name in words, derived from Apple's constant: "creation date", "is invisible", and "protection"
  /// for the protection class.
  package var displayName: String {
    if code == .protection { return "protection" }
    guard let constantName else { return code.rawValue }
    let prefixes = ["kSecAttr", "kSec"]
    let name = prefixes.lazy.filter { constantName.hasPrefix($0) }.map { constantName.dropFirst($0.count) }.first
    return (name ?? constantName[...]).reduce(into: "") { words, letter in
      // Consecutive capitals, as in URL and ID, stay one word.
      if letter.isUppercase, !words.isEmpty, words.last?.isUppercase == false { words.append(" ") }
      words.append(letter)
    }.lowercased()
  }
}
