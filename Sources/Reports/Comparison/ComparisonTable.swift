import ArchivedKeychain
import KeychainFormats
import KeychainRules
import Migration

/// The four restores in a table of two rows and two columns.
struct ComparisonTable {
  private let page: ComparisonPage

  init(_ page: ComparisonPage) { self.page = page }

  func write(to markup: inout Markup) {
    markup.newLine()
    markup.element("table", ["class": "plain four"]) { markup in
      markup.element("thead") { markup in
        markup.element("tr") { markup in
          markup.element("th", ["scope": "col"]) { $0.element("span", ["class": "unseen"], "Backup") }
          markup.element("th", ["scope": "col"]) { markup in
            markup.words("Back to ")
            markup.name(page.phone)
          }
          markup.element("th", ["scope": "col"], "To another device")
        }
      }
      markup.element("tbody") { markup in
        for hasPassword in [true, false] {
          markup.element("tr") { markup in
            markup.element("th", ["scope": "row"], hasPassword ? "A backup with a password" : "A backup without one")
            for onSameDevice in [true, false] {
              cell(RestoreSetting(hasPassword: hasPassword, onSameDevice: onSameDevice), to: &markup)
            }
          }
        }
      }
    }
  }

  /// That none stays is said of a device alone: a backup does not show all that stays.
  private func cell(_ setting: RestoreSetting, to markup: inout Markup) {
    let counts = page.comparison[setting]
    let isCurrent = setting == page.current
    markup.element("td", ["class": isCurrent ? "current" : "other"]) { markup in
      markup.element("b", Amounts.grouped(counts.arrives))
      markup.words(counts.arrives == 1 ? " arrives" : " arrive")
      var rest: [String] = []
      if counts.staysBehind > 0 || !page.isOfBackup {
        rest.append("\(Amounts.grouped(counts.staysBehind)) \(counts.staysBehind == 1 ? "stays" : "stay") behind")
      }
      if counts.unreadable > 0 { rest.append("\(Amounts.grouped(counts.unreadable)) cannot be read") }
      if isCurrent { rest.append("planned here") }
      if !rest.isEmpty { markup.element("small", rest.joined(separator: " · ")) }
    }
  }
}

extension PageTable {
  /// Every item with where it can go at all.
  init(_ page: ComparisonPage) {
    let count = page.comparison.items.count
    self.init(
      title: count == 1 ? "The item" : "All \(Amounts.grouped(count)) items", resultTitle: "Arrives on",
      rows: page.comparison.items.map { Row($0, page) },
      filters: [(.moves, "any device"), (.stays, "its own or none"), (.lost, "unreadable")])
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
      detail: [reason?.explanation.headline, Self.otherWays(item)].compactMap(\.self).joined(separator: "; "))
  }

  /// "direct transfer: yes, iCloud Keychain: no"
  private static func otherWays(_ item: MigrationComparison.Item) -> String {
    let ways = item.ways
    return "direct transfer: \(ways.directTransfer.verdict.words), "
      + "iCloud Keychain: \(ways.iCloudKeychain.verdict.words)"
  }
}
