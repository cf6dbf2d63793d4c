package import KeyhaulKit

/// The transfer methods as text: the number of items for each method, and the items by name.
struct TransferMethodText {
  let comparison: MigrationComparison

  func lines(style: TextStyle, showsAll: Bool) -> [String] {
    var table = Table(
      [.init("TRANSFER METHOD", flexible: true)]
        + TransferAssessment.Verdict.allCases.map { .init($0.displayName.uppercased(), rightAligned: true) })
    for method in TransferMethod.allCases {
      let counts = comparison[method]
      table.add(
        [method.displayName] + TransferAssessment.Verdict.allCases.map { HumanReadable.grouped(counts[$0, default: 0]) }
      )
    }
    return table.lines(style: style) + (showsAll ? [""] + itemLines(style) : [])
  }

  /// Returns the table of items with the verdict for each transfer method.
  private func itemLines(_ style: TextStyle) -> [String] {
    var table = Table([
      .init("ITEM", rightAligned: true), .init("NAME", flexible: true), .init("PASSWORD"), .init("WITHOUT"),
      .init("DIRECT"), .init("ICLOUD"),
    ])
    for item in comparison.items {
      let name = item.identity.isEncrypted ? "(encrypted)" : ItemText.name(item.identity)
      table.add([String(item.index), name] + TransferMethod.allCases.map { item.transfers[$0].verdict.symbol })
    }
    let meaning =
      "To another device: by a backup with or without a password, a direct transfer, and iCloud Keychain. + moves  < "
      + "does not move  ? not known"
    return WordWrap.lines(of: meaning, columns: style.width) + table.lines(style: style)
  }
}

extension BackupBlindSpots {
  /// Returns the line about items that no backup contains, wrapped.
  package static func lines(style: TextStyle) -> [String] { WordWrap.lines(of: line, columns: style.width) }
}

extension SourceDeviceItems {
  /// Returns the lines about items that are only on the device, with their reasons and the state of the device.
  package func lines(style: TextStyle, showsAll: Bool) -> [String] {
    func wrapped(_ text: String, _ label: String = "") -> [String] {
      WordWrap.labeled(label, style.adapted(UntrustedText.escaped(text)), columns: style.width)
    }
    let groups = [
      ("Never in a backup", neverIncluded), ("Cannot be read on \(device), and not in the backup", unreadable),
      ("Not in this backup", addedSince),
    ].filter { !$0.1.isEmpty }
    return groups.flatMap { title, items in
      let head = wrapped("\(title) (\(HumanReadable.grouped(items.count)))").map { style.painted($0, .yellow) }
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

extension Checklist {
  /// Returns the lines of the checklist, with a box before each entry.
  ///
  /// - Parameters:
  ///   - style: The width and the colors of the output.
  ///   - isShort: Whether to leave out the titles of groups.
  func lines(style: TextStyle, isShort: Bool) -> [String] {
    let groups = groups.filter { !$0.entries.isEmpty }
    guard !groups.isEmpty else { return [] }
    let head = style.adapted(UntrustedText.escaped(name.isEmpty ? title : "\(title) \(HTMLWriter.shortened(name))"))
    return WordWrap.lines(of: head, columns: style.width).map { style.painted($0, .bold) }
      + groups.flatMap { group in
        (isShort ? [] : ["  " + style.adapted(UntrustedText.escaped(group.title))])
          + group.entries.prefix(Self.maximumEntryCount).flatMap { lines(of: $0, style, isShort: isShort) }
          + more(group.entries.count - Self.maximumEntryCount, style)
      } + [""]
  }

  private func lines(of entry: Entry, _ style: TextStyle, isShort: Bool) -> [String] {
    let indent = isShort ? "  " : "    "
    let text = entry.name.isEmpty ? entry.text : "\(HTMLWriter.shortened(entry.name)): \(entry.text)"
    let named = entry.items.prefix(Self.maximumNameCount).map { [$0.name, $0.account].compactMap(\.self) }
    let rest = entry.unnamedCount + max(0, entry.items.count - Self.maximumNameCount)
    let names =
      named.map { HTMLWriter.shortened($0.joined(separator: " · ")) }
      + (rest > 0 ? ["\(HumanReadable.grouped(rest)) more"] : [])
    let texts =
      [("\(indent)[ ] ", text)] + (entry.items.isEmpty ? [] : [("\(indent)    ", names.joined(separator: ", "))])
      + entry.details.map { ("\(indent)    ", $0) }
    return texts.flatMap { label, text in
      WordWrap.labeled(label, style.adapted(UntrustedText.escaped(text)), columns: style.width)
    } + entry.commands.map { "\(indent)    " + style.adapted(UntrustedText.escaped($0)) }
  }

  private func more(_ count: Int, _ style: TextStyle) -> [String] {
    count > 0 ? ["    \(style.ellipsis) \(HumanReadable.grouped(count)) more"] : []
  }
}
