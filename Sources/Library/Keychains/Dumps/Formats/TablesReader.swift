import Basics
import KeychainFormats

/// A reader for a dictionary with an array of items for each table (`.tables`, `.untypedTables`).
enum TablesReader {
  /// A key beside the tables in the keychain file of a backup, whose items are encrypted.
  private static let backupKeybag = "keybag-uuid"
  private static let backupItemKeys: Set<String> = ["v_Data", "v_PersistentRef"]

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

  /// Reads the entries of a table. A value of another type counts as an entry only if it has the name of a table.
  private static func readTable(
    _ table: PropertyValue, named name: String, into collector: inout DumpCollector
  ) throws(KeyhaulError) {
    let kind = ItemKind(rawValue: name)
    guard case .array(let entries) = table else {
      guard kind != nil else { return }
      _ = try collector.nextEntry()
      return collector.skip(.notAnItem)
    }
    let style: DumpValues.Style = collector.format == .untypedTables ? .untyped : .typed
    for entry in entries {
      let position = try collector.nextEntry()
      if let kind, case .dictionary(let attributes) = entry, !attributes.entries.isEmpty {
        collector.append(attributes, at: position, as: kind, .stated, style)
      } else if kind == nil {
        collector.skipEntry(ofTable: name)
      } else {
        collector.skip(.notAnItem)
      }
    }
  }

  /// Returns the entries of all tables that are dictionaries.
  private static func entries(of root: PropertyDictionary) -> some Sequence<PropertyDictionary> {
    root.entries.lazy.filter { $0.key.stringValue.flatMap(ItemKind.init(rawValue:)) != nil }
      .flatMap { $0.value.arrayValue ?? [] }.compactMap(\.dictionaryValue)
  }

  /// Checks that the dictionary is not the keychain file of a backup, whose items are encrypted.
  private static func rejectBackup(_ root: PropertyDictionary) throws(KeyhaulError) {
    let entries = Array(entries(of: root))
    let hasOnlyEncryptedEntries =
      !entries.isEmpty
      && entries.allSatisfy { entry in entry.entries.allSatisfy { backupItemKeys.contains($0.key.stringValue ?? "") } }
    guard hasOnlyEncryptedEntries || root[backupKeybag] != nil else { return }
    throw KeyhaulError(
      .backupKeychain,
      root[backupKeybag] != nil
        ? "it names the keybag that its items are encrypted for" : "its entries have only an encrypted blob")
  }

  /// Returns whether every value is data, so that types were lost.
  private static func isUntyped(_ root: PropertyDictionary) -> Bool {
    var hasText = false
    for entry in entries(of: root) {
      for pair in entry.entries {
        guard case .data = pair.value else { return false }
        if let code = pair.key.stringValue, !code.hasPrefix("v_") { hasText = true }
      }
    }
    return hasText
  }
}
