import Basics
import KeychainFormats

/// A reader for a dictionary with an array of items for each table (`.tables`, `.untypedTables`).
enum TablesReader {
  /// The key with the keybag's UUID. Only the keychain file of a backup has it.
  private static let keybagKey = "keybag-uuid"
  /// The keys of an item in the keychain file of a backup.
  private static let encryptedItemKeys: Set<String> = ["v_Data", "v_PersistentRef"]

  /// Returns whether a dictionary has the name of a table among its keys.
  static func recognizes(_ root: PropertyDictionary) -> Bool {
    root.entries.contains { $0.key.stringValue.flatMap(ItemKind.init(rawValue:)) != nil }
  }

  /// Reads the items of all tables.
  ///
  /// - Throws: `.backupKeychain` if the dictionary is the keychain file of a backup; `.dumpOverLimit` if there are more
  ///   entries than a dump may have.
  static func read(_ root: PropertyDictionary, _ limit: Int) throws(KeyhaulError) -> KeychainDump {
    try rejectBackup(root)
    var collector = DumpCollector(isUntyped(root) ? .untypedTables : .tables, acceptingAtMost: limit)
    var tableNames: Set<String> = []
    for pair in root.entries {
      guard let name = pair.key.stringValue else { continue }
      if tableNames.insert(name).inserted {
        try readTable(pair.value, named: name, into: &collector)
      } else {
        collector.repeatedKeyCount += 1
      }
    }
    return collector.dump()
  }

  /// Reads the entries of a table. A value that is not an array counts as one skipped entry if `name` is a known table.
  /// Otherwise it is ignored.
  private static func readTable(
    _ table: PropertyValue, named name: String, into collector: inout DumpCollector
  ) throws(KeyhaulError) {
    let kind = ItemKind(rawValue: name)
    guard case .array(let entries) = table else {
      guard kind != nil else { return }
      _ = try collector.countEntry()
      return collector.skip(.notAnItem)
    }
    let style: DumpValues.Style = collector.format == .untypedTables ? .untyped : .typed
    for entry in entries {
      let position = try collector.countEntry()
      if let kind, case .dictionary(let attributes) = entry, !attributes.entries.isEmpty {
        // The dictionary's key states the table of its items.
        collector.append(attributes, at: position, as: kind, tableSource: .stated, style: style)
      } else if kind == nil {
        collector.skipEntry(ofTable: name)
      } else {
        collector.skip(.notAnItem)
      }
    }
  }

  /// Returns the dictionaries among the entries of all known tables.
  private static func entries(of root: PropertyDictionary) -> some Sequence<PropertyDictionary> {
    root.entries.lazy.filter { $0.key.stringValue.flatMap(ItemKind.init(rawValue:)) != nil }
      .flatMap { $0.value.arrayValue ?? [] }.compactMap(\.dictionaryValue)
  }

  /// Checks that the dictionary is not the keychain file of a backup, whose items are encrypted.
  private static func rejectBackup(_ root: PropertyDictionary) throws(KeyhaulError) {
    let entries = Array(entries(of: root))
    let hasOnlyEncryptedEntries =
      !entries.isEmpty
      && entries.allSatisfy { attributes in
        attributes.entries.allSatisfy { encryptedItemKeys.contains($0.key.stringValue ?? "") }
      }
    guard hasOnlyEncryptedEntries || root[keybagKey] != nil else { return }
    throw KeyhaulError(
      .backupKeychain,
      root[keybagKey] != nil
        ? "it names the keybag that its items are encrypted for" : "its entries have only an encrypted blob")
  }

  /// Returns whether the dump has lost the types of values: every value is data, and at least one belongs to a key that
  /// does not begin with `v_`. Keys with `v_` do not count, because their values are usually data in any dump.
  private static func isUntyped(_ root: PropertyDictionary) -> Bool {
    var hasUnprefixedKey = false
    for attributes in entries(of: root) {
      for pair in attributes.entries {
        guard case .data = pair.value else { return false }
        if let code = pair.key.stringValue, !code.hasPrefix("v_") { hasUnprefixedKey = true }
      }
    }
    return hasUnprefixedKey
  }
}
