package import KeyhaulKit

extension UnseenItems {
  /// The line about items that no backup contains, wrapped.
  package static func lines(style: TextStyle) -> [String] { WordWrap.lines(of: line, columns: style.width) }
}

extension MakerItems {
  /// The items that the device has and its backup has not, each with its reason, and as of when.
  package func lines(style: TextStyle, showsAll: Bool) -> [String] {
    func wrapped(_ text: String, _ label: String = "") -> [String] {
      WordWrap.labeled(label, style.adapted(HostileText.shown(text)), columns: style.width)
    }
    let groups = [
      ("Never in the backup", never), ("Cannot be read on \(device), and not in the backup", unreadable),
      ("Not in this backup", since),
    ].filter { !$0.1.isEmpty }
    return groups.flatMap { title, items in
      let head = wrapped("\(title) (\(Amounts.grouped(items.count)))").map { style.painted($0, .yellow) }
      return head + ReportItemTable(items, showsAll: showsAll, row: Self.row).lines(style: style)
    } + wrapped(statement, groups.isEmpty ? "" : "    ") + [""]
  }

  private static func row(_ item: Item) -> ReportItemTable.Row {
    ReportItemTable.Row(
      symbol: item.reason?.isDamage == true ? "!" : "x", kind: item.identity.kind, name: ItemText.name(item.identity),
      protection: ItemText.protection(item.protection),
      remark: item.reason?.rawValue ?? "a new backup would contain it",
      accessGroup: item.identity.accessGroup)
  }
}
