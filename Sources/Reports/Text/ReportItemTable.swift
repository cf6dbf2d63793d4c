package import KeychainFormats
package import TextLayout

/// Items of a report in columns: a symbol, the kind, the name, the protection class, a remark where there is one.
package struct ReportItemTable {
  package struct Row {
    let symbol: String
    let kind: ItemKind
    package var name: String
    package var protection: String
    package var remark: String

    package init(symbol: String, kind: ItemKind, name: String, protection: String, remark: String = "") {
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

  /// - Parameters:
  ///   - showsAll: Shows every item, however many.
  ///   - row: Makes the row of an item; asked for those that are shown.
  package init<Item>(_ items: [Item], showsAll: Bool, row: (Item) -> Row) {
    shown = (showsAll ? items[...] : items.prefix(Self.shortGroup)).map(row)
    hiddenCount = items.count - shown.count
  }

  package func lines(style: TextStyle) -> [String] {
    let names = shown.map { style.adapted(HostileText.shown($0.name)) }
    let protectionWidth = shown.map { DisplayWidth.columns(of: $0.protection) }.max() ?? 0
    let widest = names.map { DisplayWidth.columns(of: $0) }.max() ?? 0
    let fixed = 4 + 11 + 2 + 2 + protectionWidth
    let nameWidth = max(Table.minimumColumnWidth, min(widest, style.width - fixed))
    var lines: [String] = []
    for (row, name) in zip(shown, names) {
      let cut = DisplayWidth.cut(name, columns: nameWidth, ellipsis: style.ellipsis)
      var line = "  \(row.symbol) " + DisplayWidth.padded(ItemText.kind(row.kind), columns: 11) + "  "
      line += DisplayWidth.padded(cut, columns: nameWidth) + "  "
      line += DisplayWidth.padded(style.adapted(row.protection), columns: protectionWidth)
      let remark = style.adapted(HostileText.shown(row.remark))
      let fits = DisplayWidth.columns(of: line) + 2 + DisplayWidth.columns(of: remark) <= style.width
      if !remark.isEmpty, fits { line += "  " + remark }
      lines.append(Self.withoutTrailingSpace(line))
      if !remark.isEmpty, !fits { lines += WordWrap.labeled("      ", remark, columns: style.width) }
    }
    if hiddenCount > 0 {
      lines.append("    \(style.ellipsis) \(Amounts.grouped(hiddenCount)) more (-v shows all)")
    }
    return lines
  }

  private static func withoutTrailingSpace(_ line: String) -> String {
    String(line.dropLast(line.reversed().prefix { $0 == " " }.count))
  }
}
