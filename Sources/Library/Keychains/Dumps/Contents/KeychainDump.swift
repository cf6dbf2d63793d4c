package import KeychainFormats
package import KeychainRules

/// A keychain as another program exported it.
///
/// The secrets are unencrypted, or stored with their keys. Nothing has enforced the protection classes of the items,
/// and nothing shows who wrote the dump.
package struct KeychainDump: Sendable {
  /// The recognized format.
  package let format: DumpFormat
  /// The items in the order genp, inet, cert, keys, and in the dump's order within each table.
  package let items: [DumpedItem]
  /// The number of entries that are not items, for each reason.
  package let skippedEntryCounts: [SkipReason: Int]
  /// The names of unknown tables, at most `DumpCollector.maximumTableNameCount`. They are untrusted text.
  package let unknownTableNames: [String]
  /// The number of keys that occur twice in a dictionary. The first value of each was used.
  package let repeatedKeyCount: Int
  /// Details of a keychain database; `nil` if the dump has another format.
  package let database: DatabaseDetails?

  /// The reason why an entry is not an item. The raw value is the identifier in machine-readable output.
  package enum SkipReason: String, Sendable, CaseIterable, Hashable {
    /// An identity. Its certificate and its key are also separate entries.
    case identity
    /// An entry of a table or class that is not known.
    case unknownTable = "unknown-table"
    /// An entry that names no table and has no attribute that determines one.
    case noTable = "no-table"
    /// An entry that is not a dictionary of attributes.
    case notAnItem = "not-an-item"
    /// An entry with a layout that no public source describes.
    case unknownLayout = "unknown-layout"

    /// A phrase for one entry, such as "entry of an unknown table".
    package var noun: String {
      switch self {
      case .identity: "identity (its certificate and its key are items of their own)"
      case .unknownTable: "entry of an unknown table"
      case .noTable: "entry that names no table"
      case .notAnItem: "entry that is not an item"
      case .unknownLayout: "entry of an unknown layout"
      }
    }

    /// A phrase for several entries.
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

  /// Creates a dump, and gives every item its index.
  ///
  /// - Parameters:
  ///   - format: The recognized format.
  ///   - items: The items in the dump's order.
  ///   - skippedEntryCounts: The number of entries that are not items, for each reason.
  ///   - unknownTableNames: The names of unknown tables.
  ///   - repeatedKeyCount: The number of keys that occur twice in a dictionary.
  ///   - database: Details of a keychain database.
  package init(
    format: DumpFormat, items: [DumpedItem], skippedEntryCounts: [SkipReason: Int] = [:],
    unknownTableNames: [String] = [], repeatedKeyCount: Int = 0, database: DatabaseDetails? = nil
  ) {
    self.format = format
    self.database = database
    self.skippedEntryCounts = skippedEntryCounts
    self.unknownTableNames = unknownTableNames
    self.repeatedKeyCount = repeatedKeyCount
    var ordered = ItemKind.allCases.flatMap { kind in items.filter { $0.kind == kind } }
    for index in ordered.indices { ordered[index].index = index }
    self.items = ordered
  }

  /// The largest accepted number of items. A full device has some thousands.
  package static let maximumItemCount = 200_000
  /// The largest accepted size of a dump, in bytes.
  package static let maximumByteCount = XMLPlist.maximumByteCount

  /// The number of skipped entries.
  package var skippedCount: Int { skippedEntryCounts.values.reduce(0, +) }
  /// The number of entries, including skipped ones.
  package var entryCount: Int { items.count + skippedCount }

  /// The numbers of items that could not be read completely, by class, reason and readable part; the largest numbers
  /// first.
  package var undecryptedCounts: [UndecryptedCount] {
    struct Group: Hashable {
      let protection: ProtectionClass?
      let reason: Reason
      let hasAttributes: Bool
    }
    var itemCounts: [Group: Int] = [:]
    for item in items {
      guard let fault = item.fault else { continue }
      let group = Group(protection: item.protection, reason: fault.reason, hasAttributes: item.item != nil)
      itemCounts[group, default: 0] += 1
    }
    let counts = itemCounts.map { group, itemCount in
      UndecryptedCount(
        protection: group.protection, reason: group.reason, hasAttributes: group.hasAttributes, itemCount: itemCount)
    }
    let sortKey = { (count: UndecryptedCount) in
      (-count.itemCount, count.protection?.rawValue ?? "", count.reason.rawValue, count.hasAttributes ? 1 : 0)
    }
    return counts.sorted { sortKey($0) < sortKey($1) }
  }

  /// The number of items of one class that could not be read completely for one reason.
  package struct UndecryptedCount: Sendable, Hashable {
    /// The protection class; `nil` if no known class is stated.
    package let protection: ProtectionClass?
    /// The reason why the items could not be read completely.
    package let reason: Reason
    /// Whether the attributes could be read, so that only the secrets are missing.
    package let hasAttributes: Bool
    /// The number of items.
    package let itemCount: Int
  }

  /// A description of the dump that follows "it is", such as "an unencrypted dump".
  package var nature: String {
    switch format {
    case .tables, .untypedTables, .items, .genericPasswords, .objection, .irestore, .grapefruit, .keychainDumper:
      "an unencrypted dump"
    case .encryptedEntries: "a dump of encrypted items with their keys"
    case .database:
      switch database?.keys {
      case .inDatabase: "a keychain's own database with its keys stored unencrypted in it, like a Simulator's"
      case .given: "a keychain's own database, decrypted with the given class keys"
      case .absent, nil: "a keychain's own database, without the keys to decrypt it"
      }
    }
  }
}
