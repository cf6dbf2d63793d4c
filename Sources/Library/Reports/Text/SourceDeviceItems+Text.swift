package import KeyhaulKit

extension SourceDeviceItems {
  /// Sentences about the comparison with the source device: its revision, whether it is proven to be the source device, and
  /// the changes since the backup.
  package var statement: String {
    let relation = isProven ? "which made this backup" : "whose identifier is in this backup"
    var text = "Compared with \(device), \(relation), as it is now (revision \(revision))."
    if !isProven { text += " No item in the backup proves that \(device) is the source device." }
    if hasChanged { text += " \(device) has changed since the backup: \(HumanReadable.list(changeClauses))." }
    if possiblyIncludedCount > 0 {
      text +=
        " \(HumanReadable.count(possiblyIncludedCount, "item")) on it may be among the backup's items that cannot be decrypted."
    }
    return text
  }

  private var changeClauses: [String] {
    func items(_ count: Int) -> String { HumanReadable.count(count, "item") }
    return [
      addedSince.isEmpty
        ? nil : "\(items(addedSince.count)) on it \(addedSince.count == 1 ? "is" : "are") not in the backup",
      changedCount == 0 ? nil : "\(items(changedCount)) \(changedCount == 1 ? "differs" : "differ")",
      removedCount == 0
        ? nil
        : "\(items(removedCount)) of the backup \(removedCount == 1 ? "is" : "are") no longer on it, so other items that the "
          + "backup omits may be gone too",
    ].compactMap(\.self)
  }

  /// The counts of items that are only on the device, such as "4 items on old-phone are never in a backup"; `nil` if there
  /// are none.
  package var absence: String? {
    let counts: [(count: Int, predicate: String)] = [
      (neverIncluded.count, "never in a backup"), (unreadable.count, "damaged there and never in a backup"),
      (addedSince.count, "not in this backup"),
    ]
    let clauses = counts.filter { $0.count > 0 }.enumerated().map { index, clause in
      // Only the first number has a noun.
      let subject =
        index == 0 ? "\(HumanReadable.count(clause.count, "item")) on \(device)" : HumanReadable.grouped(clause.count)
      return "\(subject) \(clause.count == 1 ? "is" : "are") \(clause.predicate)"
    }
    return clauses.isEmpty ? nil : clauses.joined(separator: ", ")
  }
}

extension SourceDeviceItems {
  /// Returns the lines about items that are only on the device, with their reasons and the state of the device.
  package func lines(style: TextStyle, showsAll: Bool) -> [String] {
    func wrapped(_ text: String, label: String = "") -> [String] {
      WordWrap.labeled(label, style.adapted(UntrustedText.escaped(text)), columns: style.width)
    }
    let allGroups: [(title: String, items: [Item])] = [
      ("Never in a backup", neverIncluded), ("Cannot be read on \(device), and not in the backup", unreadable),
      ("Not in this backup", addedSince),
    ]
    let groups = allGroups.filter { !$0.items.isEmpty }
    return groups.flatMap { title, items in
      let heading = wrapped("\(title) (\(HumanReadable.grouped(items.count)))").map { style.painted($0, .yellow) }
      return heading + ReportItemTable(items, showsAll: showsAll, row: Self.row).lines(style: style)
    } + wrapped(statement, label: groups.isEmpty ? "" : "    ") + [""]
  }

  private static func row(_ item: Item) -> ReportItemTable.Row {
    ReportItemTable.Row(
      symbol: item.reason?.isDamage == true ? "!" : "x", kind: item.identity.kind, name: ItemText.name(item.identity),
      protection: ItemText.protection(item.protection),
      remark: item.reason?.rawValue ?? "a new backup would contain it",
      accessGroup: item.identity.accessGroup)
  }
}
