import Basics
import KeychainFormats

/// In which form another program gave the items of a keychain away. The content decides, never a file's name.
///
/// The raw value is the identifier in machine-readable output. Source: public readers of such files; no vendor documents
/// its own.
public enum DumpForm: String, Sendable, CaseIterable, Hashable {
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
  public var phrase: String {
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
  public var noun: String { self == .database ? "database" : "dump" }
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
