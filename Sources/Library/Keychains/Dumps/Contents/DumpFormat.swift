/// The format of a keychain dump. It is recognized by the content, never by the file's name: `KeychainDump.init(parsing:)`
/// asks the readers in `Formats`.
///
/// The raw value is the identifier in machine-readable output. Source: public readers of such files; no vendor
/// documents its format.
package enum DumpFormat: String, Sendable, CaseIterable, Hashable {
  /// A property list whose arrays `genp`, `inet`, `keys` and `cert` contain typed attributes and secrets: newer GrayKey
  /// exports. iLEAPP's `--keychain` accepts such a file with `genp`.
  case tables = "keychain-tables"
  /// Keychain tables in which every value is data, with numbers and dates as text: older GrayKey exports.
  case untypedTables = "keychain-tables-untyped"
  /// A property list with an array of dictionaries, one for each item of any table: `decrypted_keychain.plist`.
  case items = "keychain-items"
  /// An array of generic passwords with bytes as Base64 text: `keychain_decrypted.plist` of an on-device decrypter.
  case genericPasswords = "generic-passwords"
  /// A JSON array of objects with an `item_class`, which objection prints for one app.
  case objection
  /// A JSON object with an array of items for each kind: `irestore dumpkeys`.
  case irestore
  /// A JSON array of objects with a `clazz`, which grapefruit shows for one app.
  case grapefruit
  /// Text with a line for each attribute, which keychain_dumper prints.
  case keychainDumper = "keychain-dumper"
  /// A property list with encrypted `keychainEntries` and their keys: UFED's `backup_keychain_v2.plist`.
  case encryptedEntries = "sealed-entries"
  /// A keychain database: `keychain-2-debug.db` of a Simulator, or `keychain-2.db` of a device or a Mac.
  case database = "keychain-database"

  /// A phrase for reports, such as "decrypted keychain tables (as GrayKey writes them)".
  package var phrase: String {
    switch self {
    case .tables: "decrypted keychain tables (as GrayKey writes them)"
    case .untypedTables: "decrypted keychain tables without types (as older versions of GrayKey write them)"
    case .items: "an array of decrypted keychain items (decrypted_keychain.plist)"
    case .genericPasswords: "an array of decrypted generic passwords (keychain_decrypted.plist)"
    case .objection: "keychain items as JSON (as objection writes them)"
    case .irestore: "keychain items of a backup as JSON (as irestore writes them)"
    case .grapefruit: "keychain items as JSON (as grapefruit writes them)"
    case .keychainDumper: "keychain items as text (as keychain_dumper prints them)"
    case .encryptedEntries: "encrypted keychain entries with their keys (as UFED writes them)"
    case .database: "a keychain's own database (keychain-2.db)"
    }
  }
}

extension DumpFormat {
  /// The word for a file of this format in reports: "dump" or "database".
  package var noun: String { self == .database ? "database" : "dump" }
  /// Whether Keyhaul decrypts the items. In the other formats they are unencrypted.
  package var hasEncryptedItems: Bool { self == .database || self == .encryptedEntries }
}
