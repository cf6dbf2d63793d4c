import Basics
import KeychainFormats
import KeychainRules

/// Collects the entries of a dump, within the limits that apply to every format.
struct DumpCollector {
  let format: DumpFormat
  private var items: [DumpedItem] = []
  private var skippedEntryCounts: [KeychainDump.SkipReason: Int] = [:]
  private var unknownTableNames: [String] = []
  private var entryCount = 0
  var repeatedKeyCount = 0

  /// The largest number of unknown table names that are recorded. The entries of all unknown tables are counted.
  static let maximumTableNameCount = 8

  private let limit: Int

  init(_ format: DumpFormat, acceptingAtMost limit: Int) {
    self.format = format
    self.limit = limit
  }

  /// Counts an entry, before it is added or skipped.
  ///
  /// - Returns: The position of the entry.
  /// - Throws: `.dumpOverLimit` if there are more entries than a dump may have.
  mutating func countEntry() throws(KeyhaulError) -> Int {
    guard entryCount < limit else {
      throw KeyhaulError(.dumpOverLimit, "more than \(HumanReadable.grouped(limit)) entries")
    }
    entryCount += 1
    return entryCount - 1
  }

  mutating func append(_ item: DumpedItem) { items.append(item) }

  /// Records that the current entry is skipped, because it is not an item.
  mutating func skip(_ reason: KeychainDump.SkipReason, table: String? = nil) {
    skippedEntryCounts[reason, default: 0] += 1
    guard let table, !unknownTableNames.contains(table), unknownTableNames.count < Self.maximumTableNameCount else {
      return
    }
    unknownTableNames.append(table)
  }

  /// Records that the current entry is skipped, because its table contains none of the four kinds of items.
  ///
  /// - Parameter name: The name of the table, or `nil` if it is not text.
  mutating func skipEntry(ofTable name: String?) {
    if name == TableName.identities { skip(.identity) } else { skip(.unknownTable, table: name) }
  }

  /// Adds an entry with unencrypted attributes and secrets.
  ///
  /// - Parameters:
  ///   - entry: The attributes and secrets.
  ///   - position: The position of the entry.
  ///   - kind: The table of the item.
  ///   - tableSource: The way in which the table was determined.
  ///   - style: The representation of the values.
  ///   - unusableAttributes: Attributes that were omitted from the entry, because their values cannot be used.
  mutating func append(
    _ entry: PropertyDictionary, at position: Int, as kind: ItemKind, tableSource: DumpedItem.TableSource,
    style: DumpValues.Style, unusableAttributes: [AttributeCode] = []
  ) {
    let reading = DumpValues.read(entry, as: kind, style: style)
    repeatedKeyCount += reading.repeatedKeyCount
    let content: DumpedItem.Content
    if reading.isSecretUnusable {
      let detail = style == .base64Text ? "the secret is not Base64 text" : "the secret is not stored as data"
      content = .attributesOnly(reading.item, DumpFault(.malformed, detail))
    } else {
      content = reading.item.secret == nil ? .attributesOnly(reading.item, nil) : .open(reading.item)
    }
    append(
      DumpedItem(
        entryPosition: position, kind: kind, tableSource: tableSource, content: content,
        unusableAttributes: (unusableAttributes + reading.unusableAttributes).sorted()))
  }

  /// Returns the dump with all collected entries.
  func dump() -> KeychainDump {
    KeychainDump(
      format: format, items: items, skippedEntryCounts: skippedEntryCounts, unknownTableNames: unknownTableNames,
      repeatedKeyCount: repeatedKeyCount)
  }
}

/// Names of known tables that do not contain one of the four kinds of items.
enum TableName {
  /// The table of identities. Keychains do not have one; in a dump it repeats certificates and keys.
  static let identities = "idnt"
}
