public import Basics
package import KeychainFormats
package import KeychainRules

/// What another program's dump gives of a keychain. Its secrets are in clear, or beside their keys: nothing enforced the
/// classes of its items, and nothing shows who wrote it.
package struct KeychainDump: Sendable {
  /// The form that was recognized.
  package let form: DumpForm
  /// In the order genp, inet, cert, keys, and within each as the dump has them.
  package let items: [DumpedItem]
  /// Entries that are no item here, counted by why.
  package let skipped: [SkippedEntry: Int]
  /// Names of tables that are not known, as far as few were found; hostile.
  package let unknownTables: [String]
  /// Keys that stand twice in one dictionary; of each the first was taken.
  package let repeatedKeyCount: Int
  /// What is told of a database besides its items; `nil` of every other form.
  package let database: DatabaseFacts?

  /// Why an entry is no item here. The raw value is the identifier in machine-readable output.
  package enum SkippedEntry: String, Sendable, CaseIterable, Hashable {
    /// An identity: its certificate and its key stand there on their own.
    case identity
    /// Of a table that no keychain has, or a class that is not known.
    case unknownTable = "unknown-table"
    /// Nothing says which table it is of, and nothing in it tells.
    case noTable = "no-table"
    /// No dictionary of attributes.
    case notAnItem = "not-an-item"
    /// Stored in a way that no public description covers.
    case unknownLayout = "unknown-layout"

    /// What a sentence calls one of them: "entry of an unknown table".
    package var noun: String {
      switch self {
      case .identity: "identity (its certificate and its key are items of their own)"
      case .unknownTable: "entry of an unknown table"
      case .noTable: "entry that names no table"
      case .notAnItem: "entry that is not an item"
      case .unknownLayout: "entry of an unknown layout"
      }
    }

    /// The same of several.
    package var plural: String {
      switch self {
      case .identity: "identities (their certificates and keys are items of their own)"
      case .unknownTable: "entries of unknown tables"
      case .noTable: "entries that name no table"
      case .notAnItem: "entries that are not items"
      case .unknownLayout: "entries of an unknown layout"
      }
    }
  }

  /// Takes what a reader found, and gives every item its position.
  ///
  /// - Parameters:
  ///   - form: The form that was recognized.
  ///   - items: In the dump's own order.
  ///   - skipped: Entries that are no item here.
  ///   - unknownTables: Names of tables that are not known.
  ///   - repeatedKeyCount: Keys that stand twice in one dictionary.
  ///   - database: What is told of a database besides its items.
  package init(
    form: DumpForm, items: [DumpedItem], skipped: [SkippedEntry: Int] = [:], unknownTables: [String] = [],
    repeatedKeyCount: Int = 0, database: DatabaseFacts? = nil
  ) {
    self.form = form
    self.database = database
    self.skipped = skipped
    self.unknownTables = unknownTables
    self.repeatedKeyCount = repeatedKeyCount
    var ordered = ItemKind.allCases.flatMap { kind in items.filter { $0.kind == kind } }
    for index in ordered.indices { ordered[index].index = index }
    self.items = ordered
  }

  /// The most items that a dump may have; a full device has some thousands.
  package static let maximumItemCount = 200_000
  /// The most bytes that a dump may have.
  package static let maximumByteCount = XMLPlist.maximumByteCount

  /// How many entries were skipped.
  package var skippedCount: Int { skipped.values.reduce(0, +) }
  /// How many entries the dump has, items and skipped ones.
  package var entryCount: Int { items.count + skippedCount }

  /// What does not open whole, counted by how far it opens, its class and the reason; the most first.
  package var shutCounts: [ShutCount] {
    var counts: [ShutCount: Int] = [:]
    for item in items {
      guard let fault = item.fault else { continue }
      let key = ShutCount(
        protection: item.protection, reason: fault.reason, hasAttributes: item.item != nil, itemCount: 0)
      counts[key, default: 0] += 1
    }
    let order = { (count: ShutCount) in
      (-count.itemCount, count.protection?.rawValue ?? "", count.reason.rawValue, count.hasAttributes ? 1 : 0)
    }
    return counts.map { key, count in
      ShutCount(
        protection: key.protection, reason: key.reason, hasAttributes: key.hasAttributes, itemCount: count)
    }.sorted { order($0) < order($1) }
  }

  /// Items that do not open whole, of one class and for one reason.
  package struct ShutCount: Sendable, Hashable {
    /// The class; `nil` if nothing names one that is known.
    package let protection: ProtectionClass?
    /// Why they do not open.
    package let reason: Reason
    /// Whether the attributes are open and only the secrets are shut.
    package let hasAttributes: Bool
    /// How many items.
    package let itemCount: Int
  }

  /// The attributes that the dump can tell of an item; `nil` for all. Of forms that leave attributes out, what is not
  /// there says nothing.
  package var toldAttributes: Set<AttributeCode>? {
    switch form {
    case .objection: Set(ObjectionAttributes.codes.values).union([.protection, .accessControl])
    case .genericPasswords: items.reduce(into: []) { $0.formUnion($1.item?.attributes.keys.map { $0 } ?? []) }
    case .tables, .untypedTables, .items, .sealedEntries, .database: nil
    }
  }

  /// How the items stand in it, after "it is": "a dump in clear".
  package var nature: String {
    switch form {
    case .tables, .untypedTables, .items, .genericPasswords, .objection: "an unencrypted dump"
    case .sealedEntries: "a dump of encrypted items with their keys"
    case .database:
      switch database?.keys {
      case .beside: "a keychain's own database with its keys stored unencrypted in it, like a Simulator's"
      case .given: "a keychain's own database, decrypted with the given class keys"
      case .absent, nil: "a keychain's own database, without the keys to decrypt it"
      }
    }
  }
}

extension KeyhaulError.Domain {
  /// A keychain dump. What happens to a single entry is in the `KeychainDump`.
  public static let keychainDump = Self("keychain-dump")
}

extension KeyhaulError.Code {
  private static func dump(_ rawValue: String, _ category: ErrorCategory, _ summary: String, advice: Remedy) -> Self {
    Self(rawValue, of: .keychainDump, category, summary, advice: advice)
  }

  /// The bytes are not a property list or JSON that can be read.
  public static let unreadableDump = dump(
    "unreadable", .refused, "it is not a readable keychain dump", advice: "another copy of it, or a backup")
  /// They are, but have none of the known forms.
  public static let unknownDump = dump(
    "unknownForm", .refused, "it is not a backup or a known keychain dump", advice: "check the path")
  /// A backup's own keychain file: its items are encrypted with the keys of the backup.
  public static let backupKeychain = dump(
    "backupKeychain", .refused, "it is the encrypted keychain of a backup",
    advice: "the backup that contains it, with its password")
  /// More, deeper or larger than a named limit accepts.
  public static let dumpOverLimit = dump(
    "overLimit", .refused, "the dump is over a limit", advice: "don't trust this file")
  /// The ciphers that open encrypted entries do not work here.
  public static let dumpFailed = dump(
    "failed", .failed, "a cryptographic operation failed", advice: "check the installation of OpenSSL's libcrypto")
}

/// The error of a keychain dump.
@available(*, deprecated, renamed: "KeyhaulError")
public typealias KeychainDumpError = KeyhaulError

/// In which form another program gave the items of a keychain away. The content decides, never a file's name.
///
/// The raw value is the identifier in machine-readable output. Source: public readers of such files; no vendor documents
/// its own.
package enum DumpForm: String, Sendable, CaseIterable, Hashable {
  /// A property list whose arrays `genp`, `inet`, `keys` and `cert` hold attributes and secrets in clear, with types: of
  /// GrayKey, newer exports. What iLEAPP takes as `--keychain` is one with `genp`.
  case tables = "keychain-tables"
  /// The same with data for every value, numbers and dates as text: of GrayKey, older exports.
  case untypedTables = "keychain-tables-untyped"
  /// A property list that is an array of dictionaries, one for each item of any table: `decrypted_keychain.plist`.
  case items = "keychain-items"
  /// The same of generic passwords alone, bytes as base64 text: `keychain_decrypted.plist` of an on-device decrypter.
  case genericPasswords = "generic-passwords"
  /// A JSON array of objects with an `item_class`, as objection prints them for one app.
  case objection
  /// A property list with `keychainEntries` that are sealed and the keys beside them: UFED's `backup_keychain_v2.plist`.
  case sealedEntries = "sealed-entries"
  /// A keychain's own database: `keychain-2-debug.db` of a Simulator, `keychain-2.db` of a device or a Mac.
  case database = "keychain-database"

  /// What a sentence calls it: "decrypted keychain tables (as of GrayKey)".
  package var phrase: String {
    switch self {
    case .tables: "decrypted keychain tables (as GrayKey writes them)"
    case .untypedTables: "decrypted keychain tables without types (as older versions of GrayKey write them)"
    case .items: "an array of decrypted keychain items (decrypted_keychain.plist)"
    case .genericPasswords: "an array of decrypted generic passwords (keychain_decrypted.plist)"
    case .objection: "keychain items as JSON (as objection writes them)"
    case .sealedEntries: "encrypted keychain entries with their keys (as UFED writes them)"
    case .database: "a keychain's own database (keychain-2.db)"
    }
  }
}

extension DumpForm {
  /// What a sentence calls a file of this form: "dump".
  package var noun: String { self == .database ? "database" : "dump" }
}

/// What objection calls the attributes of an item.
enum ObjectionAttributes {
  static let codes: [String: AttributeCode] = [
    "account": .account, "service": .service, "server": .server, "label": .label, "entitlement_group": .accessGroup,
    "description": .itemDescription, "comment": .comment, "generic": .generic, "creator": .creator, "type": .type,
    "script_code": .scriptCode, "alias": .alias, "invisible": .isInvisible, "negative": .isNegative,
    "custom_icon": .hasCustomIcon, "protected": .legacyProtected, "create_date": .creationDate,
    "modification_date": .modificationDate, "security_domain": .securityDomain, "protocol": .protocolType,
    "authentication_type": .authenticationType, "port": .port, "path": .path,
  ]
}
