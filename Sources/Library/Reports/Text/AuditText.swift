package import KeyhaulKit

/// The audit of a keychain as text, for developers.
package struct AuditText {
  let audit: KeychainAudit
  let source: ReportSource

  package init(_ audit: KeychainAudit, of source: ReportSource) {
    self.audit = audit
    self.source = source
  }

  /// Items with a heading and advice.
  private struct Group {
    let title: String
    let items: [MigrationComparison.Item]
    let advice: String
  }

  private var groups: [Group] {
    [
      Group(
        title: "Deprecated classes", items: audit.deprecated,
        advice: "Readable before the device is first unlocked. Use \"after first unlock\" if the app works in the "
          + "background, and \"when unlocked\" otherwise."),
      Group(
        title: "Leave the device", items: audit.leaving,
        advice: "A backup with a password moves these to any device. Anyone who knows the password can "
          + "restore them."),
    ] + (showsStayingCount ? [stayingGroup] : [])
      + (audit.unreadable.isEmpty ? [] : [unreadableGroup])
  }

  /// Whether to report the number of items that never leave the device. "0" would be wrong for a backup, which does not
  /// contain all such items.
  private var showsStayingCount: Bool { source.isDevice || !audit.staying.isEmpty }

  private var stayingGroup: Group {
    Group(
      title: "Never leave the device", items: audit.staying,
      advice: "Users lose these on a new device. Offer them a way to sign in again, or to export.")
  }

  private var unreadableGroup: Group {
    Group(
      title: "Cannot be read here", items: audit.unreadable,
      advice: "This copy does not show whether these leave the device. Audit the device or another copy.")
  }

  package func lines(style: TextStyle, showsAll: Bool) -> [String] {
    var lines = WordWrap.lines(
      of: style.adapted(UntrustedText.escaped("Audit of \(source.name)")), columns: style.width)
    lines += [""]
    for group in groups { lines += self.lines(of: group, style, showsAll: showsAll) }
    return lines + source.blindSpotLines(style: style, showsAll: showsAll)
      + WordWrap.lines(of: summary, columns: style.width)
  }

  /// The last line: "18 items: 14 leave the device, 4 never do, 1 has a deprecated class."
  private var summary: String {
    var countTexts = [HumanReadable.count(audit.leaving.count, "leaves the device", plural: "leave the device")]
    if showsStayingCount {
      countTexts.append(HumanReadable.count(audit.staying.count, "never does", plural: "never do"))
    }
    if !audit.unreadable.isEmpty {
      countTexts.append("\(HumanReadable.grouped(audit.unreadable.count)) cannot be read here")
    }
    countTexts.append(
      HumanReadable.count(audit.deprecated.count, "has a deprecated class", plural: "have a deprecated class"))
    return "\(HumanReadable.count(audit.items.count, "item")): \(countTexts.joined(separator: ", "))."
  }

  /// Returns the lines of a group. Protection classes are subheadings, because a column would leave less room for names.
  private func lines(of group: Group, _ style: TextStyle, showsAll: Bool) -> [String] {
    let heading = "\(group.title) (\(HumanReadable.grouped(group.items.count)))"
    guard !group.items.isEmpty else { return [heading, ""] }
    let classes = ProtectionClass.allCases.map(Optional.some) + [nil]
    let itemsByClass = classes.flatMap { protection in group.items.filter { $0.protection == protection } }
    let listedItems = showsAll ? itemsByClass[...] : itemsByClass.prefix(ReportItemTable.defaultItemLimit)
    let indentation = "    "
    let rows = table(of: listedItems).lines(style: style.narrowed(by: indentation.count)).map { indentation + $0 }
    // The first row has the titles of the columns.
    var lines = [style.painted(heading, .bold)] + rows.prefix(1)
    var lastSubheading: String?
    for (item, row) in zip(listedItems, rows.dropFirst()) {
      let subheading = "  " + (item.protection?.phrase ?? "of no known class")
      if subheading != lastSubheading { lines.append(subheading) }
      lastSubheading = subheading
      lines.append(row)
    }
    let omittedCount = itemsByClass.count - listedItems.count
    if omittedCount > 0 {
      lines.append("  \(style.ellipsis) \(HumanReadable.grouped(omittedCount)) more (-v shows all)")
    }
    return lines + WordWrap.labeled(indentation, group.advice, columns: style.width) + [""]
  }

  private func table(of items: ArraySlice<MigrationComparison.Item>) -> Table {
    // An empty column would only leave less room for the names.
    let reasons: [Table.Column] = items.contains { $0.reasonToStay != nil } ? [.init("WHY IT STAYS")] : []
    var table = Table([.init("KIND"), .init("NAME", flexible: true), .init("APP", flexible: true)] + reasons)
    for item in items {
      let identity = item.identity
      let name = identity.isEncrypted ? "(encrypted, item \(item.index))" : ItemText.name(identity)
      table.add([
        ItemText.kind(identity.kind), name, source.apps.app(of: identity).displayName,
        item.reasonToStay?.rawValue ?? "–",
      ])
    }
    return table
  }
}
