package import KeyhaulKit

/// The list of apps that lose items, as text: where the user has to sign in again. Apps with the most losses come first.
package struct SignInText {
  let losses: AppsNeedingSignIn
  let targetName: String
  let showsAll: Bool

  /// The maximum number of items that are named for each app.
  private static let maximumItemNameCount = 3
  /// The maximum width of an item's name, in columns.
  private static let maximumItemNameWidth = 24

  package init(summaries: [AppSummary], targetName: String, showsAll: Bool) {
    losses = AppsNeedingSignIn(summaries)
    self.targetName = targetName
    self.showsAll = showsAll
  }

  package func lines(style: TextStyle) -> [String] {
    let apps = losses.apps
    guard !apps.isEmpty else { return [] }
    // If only one app is over the limit, it is listed, because a note about it would also take one line.
    let omitsApps = !showsAll && apps.count > ReportItemTable.defaultItemLimit + 1
    let listedApps = omitsApps ? apps.prefix(ReportItemTable.defaultItemLimit) : apps[...]
    let title = "Sign in again on \(targetName), or move by hand (\(HumanReadable.grouped(apps.count)))"
    let heading = WordWrap.lines(of: style.adapted(UntrustedText.escaped(title)), columns: style.width)
    var lines = heading.map { style.painted($0, .yellow) } + Self.lines(of: listedApps, style: style)
    if listedApps.count < apps.count {
      lines.append("  \(style.ellipsis) \(HumanReadable.grouped(apps.count - listedApps.count)) more (-v shows all)")
    }
    lines += losses.clausesAboutOtherItems.flatMap { WordWrap.labeled("  ", $0, columns: style.width) }
    return lines + [""]
  }

  /// Returns a row for each app: its name, the number of lost items, and the first of them.
  private static func lines(of apps: ArraySlice<AppSummary>, style: TextStyle) -> [String] {
    // The rest of the line is for the number of items and their names.
    let maximumNameWidth = max(Table.minimumColumnWidth, style.width / 2 - 8)
    let names = apps.map { style.adapted(UntrustedText.escaped($0.app.displayName, columns: maximumNameWidth)) }
    let nameWidth = names.map { DisplayWidth.columns(of: $0) }.max() ?? 0
    let countWidth = apps.map { HumanReadable.grouped($0.losses.count).count }.max() ?? 0
    let nounWidth = apps.contains { $0.losses.count > 1 } ? "items".count : "item".count
    return zip(apps, names).flatMap { summary, name in
      let count = summary.losses.count
      let label =
        "  " + DisplayWidth.padded(name, columns: nameWidth) + "  "
        + DisplayWidth.padded(HumanReadable.grouped(count), columns: countWidth, rightAligned: true) + " "
        + DisplayWidth.padded(count == 1 ? "item" : "items", columns: nounWidth) + "  "
      let itemNames = summary.losses.prefix(maximumItemNameCount).map { shortName($0.identity) }
      let more = count > itemNames.count ? ", \(style.ellipsis)" : ""
      let text = style.adapted(UntrustedText.escaped(itemNames.joined(separator: ", "))) + more
      return WordWrap.labeled(label, text, columns: style.width)
    }
  }

  /// Returns the short name of an item: its account, or its usual name if it has no account.
  private static func shortName(_ identity: ItemDescriptor) -> String {
    let account = identity.account ?? ""
    return UntrustedText.shortened(account.isEmpty ? ItemText.name(identity) : account, columns: maximumItemNameWidth)
  }
}

extension AppsNeedingSignIn {
  /// The clauses about the lost items that belong to none of the listed apps. Text and pages use the same clauses.
  var clausesAboutOtherItems: [String] {
    let counts: [(count: Int, singular: String, plural: String)] = [
      (
        encryptedCount, "other lost item is encrypted, and so is the name of its app",
        "other lost items are encrypted, and so are the names of their apps"
      ),
      (unnamedCount, "other lost item does not name an app", "other lost items do not name an app"),
    ]
    return counts.filter { $0.count > 0 }.map { clause in
      HumanReadable.count(clause.count, clause.singular, plural: clause.plural)
    }
  }
}
