package import KeyhaulKit

/// A table of a report's items: symbol, kind, name, protection class and an optional remark.
package struct ReportItemTable {
  package struct Row {
    let symbol: String
    let kind: ItemKind
    package var name: String
    package var protection: String
    package var remark: String
    /// The access group, to distinguish rows that look the same. Untrusted.
    let accessGroup: String?
    /// The index in the backup, to distinguish rows that still look the same; `nil` if the item is not in a backup.
    let index: Int?

    package init(
      symbol: String, kind: ItemKind, name: String, protection: String, remark: String = "", accessGroup: String? = nil,
      index: Int? = nil
    ) {
      self.symbol = symbol
      self.kind = kind
      self.name = name
      self.protection = protection
      self.remark = remark
      self.accessGroup = accessGroup
      self.index = index
    }
  }

  private let rows: [Row]
  /// The number of items without a row.
  private let omittedCount: Int

  /// The maximum number of items in a group, unless all are requested.
  package static let defaultItemLimit = 10

  /// The known properties of an encrypted item.
  package struct EncryptedGroup: Hashable {
    let kind: ItemKind
    let protection: ProtectionClass?

    package init(kind: ItemKind, protection: ProtectionClass?) {
      self.kind = kind
      self.protection = protection
    }
  }

  /// Creates a table of items.
  ///
  /// - Parameters:
  ///   - items: The items.
  ///   - showsAll: Whether to list every item. Otherwise the table has at most `defaultItemLimit` rows, and encrypted
  ///     items with equal properties share a row with their number.
  ///   - encryptedGroup: Returns the properties of an encrypted item; `nil` if the item has a name.
  ///   - makeRow: Returns the row of an item. It is called only for items that are shown.
  package init<Item>(
    _ items: [Item], showsAll: Bool, group encryptedGroup: (Item) -> EncryptedGroup? = { _ in nil },
    row makeRow: (Item) -> Row
  ) {
    guard !showsAll else {
      rows = Self.disambiguated(items.map(makeRow))
      omittedCount = 0
      return
    }
    var counts: [EncryptedGroup: Int] = [:]
    for group in items.lazy.compactMap(encryptedGroup) { counts[group, default: 0] += 1 }
    var listedGroups: Set<EncryptedGroup> = []
    var listedItems: [Item] = []
    for item in items where listedItems.count < Self.defaultItemLimit {
      if let group = encryptedGroup(item), !listedGroups.insert(group).inserted { continue }
      listedItems.append(item)
    }
    var listedCount = 0
    let listedRows = listedItems.map { item in
      var row = makeRow(item)
      let count = encryptedGroup(item).flatMap { counts[$0] } ?? 1
      if count > 1 { (row.name, row.remark) = ("(\(HumanReadable.grouped(count)) encrypted)", "") }
      listedCount += count
      return row
    }
    rows = Self.disambiguated(listedRows)
    omittedCount = items.count - listedCount
  }

  /// Returns the rows, with remarks that distinguish equal rows: their access groups, or their indexes.
  private static func disambiguated(_ rows: [Row]) -> [Row] {
    var rows = rows
    addRemarks(to: &rows) { row in row.accessGroup.map { "access group \($0)" } ?? "no access group" }
    addRemarks(to: &rows) { row in row.index.map { "item \($0)" } }
    return rows
  }

  /// Adds remarks to rows that look the same, unless their remarks would also be the same.
  private static func addRemarks(to rows: inout [Row], from remark: (Row) -> String?) {
    let equalRows = Dictionary(grouping: rows.indices) { rowIndex in
      let row = rows[rowIndex]
      return [ItemText.kind(row.kind), row.name, row.protection, row.remark]
    }.values.filter { $0.count > 1 }
    for rowIndexes in equalRows where Set(rowIndexes.map { remark(rows[$0]) }).count > 1 {
      for rowIndex in rowIndexes {
        guard let text = remark(rows[rowIndex]) else { continue }
        rows[rowIndex].remark = rows[rowIndex].remark.isEmpty ? text : "\(rows[rowIndex].remark), \(text)"
      }
    }
  }

  /// The width of the longest kind, "certificate".
  private static let kindWidth = 11

  package func lines(style: TextStyle) -> [String] {
    let names = rows.map { style.escapedName($0.name) }
    let protectionWidth = rows.map { DisplayWidth.columns(of: $0.protection) }.max() ?? 0
    let maximumNameWidth = names.map { DisplayWidth.columns(of: $0) }.max() ?? 0
    // The margin and the symbol with a space, the kind, and gaps of two columns around the name.
    let otherColumnsWidth = 4 + Self.kindWidth + 2 + 2 + protectionWidth
    let nameWidth =
      style.cutsText
      ? max(Table.minimumColumnWidth, min(maximumNameWidth, style.width - otherColumnsWidth)) : maximumNameWidth
    var lines: [String] = []
    for (row, name) in zip(rows, names) {
      let shortName = style.cut(name, columns: nameWidth)
      var line = "  \(row.symbol) " + DisplayWidth.padded(ItemText.kind(row.kind), columns: Self.kindWidth) + "  "
      line += DisplayWidth.padded(shortName, columns: nameWidth) + "  "
      line += DisplayWidth.padded(style.adapted(row.protection), columns: protectionWidth)
      let remark = style.adapted(UntrustedText.escaped(row.remark))
      let fits = DisplayWidth.columns(of: line) + 2 + DisplayWidth.columns(of: remark) <= style.width
      if !remark.isEmpty, fits { line += "  " + remark }
      lines.append(Self.withoutTrailingSpace(line))
      if !remark.isEmpty, !fits { lines += WordWrap.labeled("      ", remark, columns: style.width) }
    }
    if omittedCount > 0 {
      lines.append("    \(style.ellipsis) \(HumanReadable.grouped(omittedCount)) more (-v shows all)")
    }
    return lines
  }

  private static func withoutTrailingSpace(_ line: String) -> String {
    String(line.dropLast(line.reversed().prefix { $0 == " " }.count))
  }
}
