import KeyhaulKit

extension RestoreTable {
  /// The four restores.
  init(_ page: ComparisonPage) {
    columns = [
      { markup in
        markup.words("Back to ")
        markup.name(page.phone)
      },
      { $0.words("To another device") },
    ]
    rows = [true, false].map { hasPassword in
      (
        hasPassword ? "A backup with a password" : "A backup without a password",
        [true, false].map { onSameDevice in
          Cell(RestoreSetting(hasPassword: hasPassword, onSameDevice: onSameDevice), of: page)
        }
      )
    }
  }
}

extension RestoreTable.Cell {
  /// That none stays is said of a device alone: a backup does not show all that stays.
  fileprivate init(_ setting: RestoreSetting, of page: ComparisonPage) {
    let counts = page.comparison[setting]
    let isCurrent = setting == page.current
    self.init(
      isCurrent: isCurrent, count: counts.arrives, unit: counts.arrives == 1 ? "arrives" : "arrive",
      details: ArrivalWarning.counted(counts.byWarning)
        + [
          counts.staysBehind > 0 || !page.isOfBackup ? Self.staysBehind(counts.staysBehind) : nil,
          Self.unreadable(counts.unreadable), isCurrent ? "planned here" : nil,
        ].compactMap(\.self))
  }
}

extension PageTable {
  /// Every item with where it can go at all.
  init(_ page: ComparisonPage) {
    let count = page.comparison.items.count
    self.init(
      title: count == 1 ? "The item" : "All \(Amounts.grouped(count)) items", resultTitle: "Arrives on",
      rows: page.comparison.items.map { Row($0, page) },
      filters: [(.moves, "any device"), (.stays, "the source device or none"), (.lost, "unreadable")])
  }
}

extension PageTable.Row {
  fileprivate init(_ item: MigrationComparison.Item, _ page: ComparisonPage) {
    func arrives(_ hasPassword: Bool, _ onSameDevice: Bool) -> Bool {
      item[RestoreSetting(hasPassword: hasPassword, onSameDevice: onSameDevice)] == .arrives
    }
    let reason = item[page.best].reason
    let (style, symbol, result): (PageTable.Style, String, String) =
      if reason?.isDamage == true {
        (.lost, "!", "cannot be read")
      } else if arrives(false, false) {
        (.moves, "+", "any device")
      } else if arrives(true, false) {
        (.moves, "+", "any device, with a password")
      } else if arrives(true, true) || arrives(false, true) {
        (.stays, "<", "\(Markup.shortened(page.phone)) only")
      } else {
        (.stays, "<", "no device")
      }
    let app = page.apps.app(of: item.identity)
    self.init(
      style: style, symbol: symbol, item: ItemWords(item.identity, index: item.index), kind: item.identity.kind,
      app: app.kind == .unknown ? "" : app.words, protection: item.protection, result: result,
      detail: [reason?.explanation.headline, item.warningAway?.explanation.headline, Self.otherWays(item)].compactMap(
        \.self
      ).joined(separator: "; "))
  }

  /// "direct transfer: yes, iCloud Keychain: no"
  private static func otherWays(_ item: MigrationComparison.Item) -> String {
    let ways = item.ways
    return "direct transfer: \(ways.directTransfer.verdict.words), "
      + "iCloud Keychain: \(ways.iCloudKeychain.verdict.words)"
  }
}

extension MigrationComparison.Item {
  /// What is known against its use on another device, where a backup brings it there.
  fileprivate var warningAway: ArrivalWarning? {
    RestoreSetting.allCases.lazy.filter { !$0.onSameDevice }.compactMap { self.warning(in: $0) }.first
  }
}
