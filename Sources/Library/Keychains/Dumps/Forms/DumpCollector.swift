import Basics
import KeychainFormats
import KeychainRules

/// What a reader has found so far, within the limits that every form has.
struct DumpCollector {
  let form: DumpForm
  private var items: [DumpedItem] = []
  private var skipped: [KeychainDump.SkippedEntry: Int] = [:]
  private var unknownTables: [String] = []
  private var entryCount = 0
  var repeatedKeyCount = 0

  /// Names of unknown tables that are kept; the entries are counted, however many there are.
  static let maximumTableNameCount = 8

  private let limit: Int

  init(_ form: DumpForm, acceptingAtMost limit: Int) {
    self.form = form
    self.limit = limit
  }

  /// Begins the next entry.
  ///
  /// - Returns: Its position.
  /// - Throws: `.dumpOverLimit` for more entries than a dump may have.
  mutating func nextEntry() throws(KeyhaulError) -> Int {
    guard entryCount < limit else {
      throw KeyhaulError(.dumpOverLimit, "more than \(HumanReadable.grouped(limit)) entries")
    }
    entryCount += 1
    return entryCount - 1
  }

  mutating func take(_ item: DumpedItem) { items.append(item) }

  /// Passes an entry over.
  mutating func skip(_ why: KeychainDump.SkippedEntry, table: String? = nil) {
    skipped[why, default: 0] += 1
    guard let table, !unknownTables.contains(table), unknownTables.count < Self.maximumTableNameCount else { return }
    unknownTables.append(table)
  }

  /// Takes an entry of attributes and secrets in clear.
  mutating func take(
    _ entry: PropertyDictionary, at position: Int, as kind: ItemKind, _ source: DumpedItem.TableSource,
    _ style: DumpValues.Style
  ) {
    let reading = DumpValues.read(entry, as: kind, style)
    repeatedKeyCount += reading.repeatedKeyCount
    let content: DumpedItem.Content =
      if reading.isSecretUnusable {
        .attributesOnly(reading.item, DumpFault(.malformed, "the secret is not stored as data"))
      } else {
        reading.item.secret == nil ? .attributesOnly(reading.item, nil) : .open(reading.item)
      }
    take(
      DumpedItem(
        entry: position, kind: kind, tableSource: source, content: content, unusableAttributes: reading.unusable))
  }

  /// What was found.
  func dump() -> KeychainDump {
    KeychainDump(
      form: form, items: items, skipped: skipped, unknownTables: unknownTables, repeatedKeyCount: repeatedKeyCount)
  }
}

/// Tables that a dump may name beside those of the four kinds.
enum TableName {
  /// Identities have no table; where a dump has one of them all the same, it repeats certificates and keys.
  static let identities = "idnt"
}
