package import KeyhaulKit

/// Items of a report in columns: a symbol, the kind, the name, the protection class, a remark where there is one.
package struct ReportItemTable {
  package struct Row {
    let symbol: String
    let kind: ItemKind
    package var name: String
    package var protection: String
    package var remark: String
    /// Whose it is, for rows that read the same otherwise; hostile.
    let accessGroup: String?
    /// Its place in the backup, for those that read the same even then.
    let place: Int?

    package init(
      symbol: String, kind: ItemKind, name: String, protection: String, remark: String = "", accessGroup: String? = nil,
      place: Int? = nil
    ) {
      self.accessGroup = accessGroup
      self.place = place
      self.symbol = symbol
      self.kind = kind
      self.name = name
      self.protection = protection
      self.remark = remark
    }
  }

  private let shown: [Row]
  /// How many more there are.
  private let hiddenCount: Int

  /// The most items that a group shows unless all are asked for.
  package static let shortGroup = 10

  /// As much as a sealed item says of itself.
  package struct Seal: Hashable {
    let kind: ItemKind
    let protection: ProtectionClass?

    package init(kind: ItemKind, protection: ProtectionClass?) {
      self.kind = kind
      self.protection = protection
    }
  }

  /// - Parameters:
  ///   - showsAll: Shows every item, however many.
  ///   - seal: What a sealed item says of itself; `nil` for one that has a name. Where not all is shown, sealed items that
  ///     say the same have one row, with their number.
  ///   - row: Makes the row of an item; asked for those that are shown.
  package init<Item>(_ items: [Item], showsAll: Bool, seal: (Item) -> Seal? = { _ in nil }, row: (Item) -> Row) {
    guard !showsAll else {
      shown = Self.distinguished(items.map(row))
      hiddenCount = 0
      return
    }
    var counts: [Seal: Int] = [:]
    for seal in items.lazy.compactMap(seal) { counts[seal, default: 0] += 1 }
    var told: Set<Seal> = []
    var first: [Item] = []
    for item in items where first.count < Self.shortGroup && seal(item).map({ told.insert($0).inserted }) ?? true {
      first.append(item)
    }
    var shownCount = 0
    let rows = first.map { item in
      var row = row(item)
      let count = seal(item).flatMap { counts[$0] } ?? 1
      if count > 1 { (row.name, row.remark) = ("(\(HumanReadable.grouped(count)) encrypted)", "") }
      shownCount += count
      return row
    }
    shown = Self.distinguished(rows)
    hiddenCount = items.count - shownCount
  }

  /// Gives rows that would read the same the access groups in which they differ, and where they differ in none, their
  /// places.
  private static func distinguished(_ rows: [Row]) -> [Row] {
    var rows = rows
    tell(&rows) { row in row.accessGroup.map { "access group \($0)" } ?? "no access group" }
    tell(&rows) { row in row.place.map { "item \($0)" } }
    return rows
  }

  private static func tell(_ rows: inout [Row], apart phrase: (Row) -> String?) {
    let alike = Dictionary(grouping: rows.indices) { place in
      [ItemText.kind(rows[place].kind), rows[place].name, rows[place].protection, rows[place].remark]
    }
    for places in alike.values where places.count > 1 && Set(places.map { phrase(rows[$0]) }).count > 1 {
      for place in places {
        guard let words = phrase(rows[place]) else { continue }
        rows[place].remark = rows[place].remark.isEmpty ? words : "\(rows[place].remark), \(words)"
      }
    }
  }

  package func lines(style: TextStyle) -> [String] {
    let names = shown.map { style.escapedName($0.name) }
    let protectionWidth = shown.map { DisplayWidth.columns(of: $0.protection) }.max() ?? 0
    let widest = names.map { DisplayWidth.columns(of: $0) }.max() ?? 0
    let fixed = 4 + 11 + 2 + 2 + protectionWidth
    let nameWidth = style.cutsText ? max(Table.minimumColumnWidth, min(widest, style.width - fixed)) : widest
    var lines: [String] = []
    for (row, name) in zip(shown, names) {
      let cut = style.cut(name, columns: nameWidth)
      var line = "  \(row.symbol) " + DisplayWidth.padded(ItemText.kind(row.kind), columns: 11) + "  "
      line += DisplayWidth.padded(cut, columns: nameWidth) + "  "
      line += DisplayWidth.padded(style.adapted(row.protection), columns: protectionWidth)
      let remark = style.adapted(UntrustedText.escaped(row.remark))
      let fits = DisplayWidth.columns(of: line) + 2 + DisplayWidth.columns(of: remark) <= style.width
      if !remark.isEmpty, fits { line += "  " + remark }
      lines.append(Self.withoutTrailingSpace(line))
      if !remark.isEmpty, !fits { lines += WordWrap.labeled("      ", remark, columns: style.width) }
    }
    if hiddenCount > 0 {
      lines.append("    \(style.ellipsis) \(HumanReadable.grouped(hiddenCount)) more (-v shows all)")
    }
    return lines
  }

  private static func withoutTrailingSpace(_ line: String) -> String {
    String(line.dropLast(line.reversed().prefix { $0 == " " }.count))
  }
}
