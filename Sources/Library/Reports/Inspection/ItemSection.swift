import KeyhaulKit

/// The sections about the keychain: a table by protection class, the damaged items, and a collapsed table of all items.
struct ItemSection {
  private let page: InspectionPage
  private var backup: InspectionPage.BackupInfo { page.backup }
  private var counts: InspectionPage.Counts { page.counts }

  init(_ page: InspectionPage) { self.page = page }

  func write(to markup: inout HTMLWriter) {
    guard backup.hasKeychain || backup.keychainReadFailure != nil else { return }
    markup.newLine()
    markup.element("section") { markup in
      markup.element("h2", "Its keychain")
      if let failure = backup.keychainReadFailure {
        markup.element("p", "It cannot be read: \(failure.description). Its contents are not known.")
        return
      }
      guard backup.items != nil else {
        markup.element(
          "p", "It is present, but encrypted: its items can be counted and listed only with the password.")
        return
      }
      markup.element("p", kindsText)
      if counts.total > 0 { writeClassTable(to: &markup) }
    }
    writeDamage(to: &markup)
    table.write(to: &markup)
  }

  /// Writes a card for each kind of damage; nothing if no item is damaged.
  private func writeDamage(to markup: inout HTMLWriter) {
    let damageReasons = Reason.allCases.filter { counts.byDamage[$0] != nil }
    guard !damageReasons.isEmpty else { return }
    markup.element("section") { markup in
      markup.element("h2", "What this copy has lost")
      for reason in damageReasons {
        let items = (backup.items ?? []).filter { $0.reason == reason }
        ReasonCard(reason: reason, style: .lost, items: items.map { .init($0.index, $0.identity) }).write(to: &markup)
      }
    }
  }

  /// The items by kind: "18 items: 10 generic passwords, 5 internet passwords, 2 certificates and 1 key."
  private var kindsText: String {
    let parts = ItemKind.allCases.compactMap { kind in counts.byKind[kind].map { HumanReadable.count($0, kind.noun) } }
    return parts.isEmpty
      ? "It has no items." : "\(HumanReadable.count(counts.total, "item")): \(HumanReadable.list(parts))."
  }

  private func writeClassTable(to markup: inout HTMLWriter) {
    markup.element("table", ["class": "plain"]) { markup in
      markup.element("thead") { markup in
        markup.element("tr") { markup in
          markup.element("th", ["scope": "col"], "May be read")
          markup.element("th", ["scope": "col"], "Can be restored to")
          markup.element("th", ["scope": "col", "class": "number"], "Items")
        }
      }
      markup.element("tbody") { markup in
        for protection in ProtectionClass.allCases.map(Optional.some) + [nil] {
          guard let count = counts.byProtection[protection] else { continue }
          markup.element("tr") { markup in
            markup.element("th", ["scope": "row"], protection?.phrase ?? "class unknown")
            markup.element("td", portability(of: protection))
            markup.element("td", ["class": "number"], HumanReadable.grouped(count))
          }
        }
      }
    }
  }

  private func portability(of protection: ProtectionClass?) -> String {
    guard let protection else { return "–" }
    return switch backup.portability(of: protection) {
    case .anyDevice: "any device"
    case .sameDevice: "\(page.sourceName) only"
    case .noDevice, .damaged: "no device"
    }
  }

  private var table: PageTable {
    PageTable(
      title: counts.total == 1 ? "The item" : "All \(HumanReadable.grouped(counts.total)) items",
      resultTitle: "Can be restored to",
      rows: (backup.items ?? []).map(row),
      filters: [
        (.moves, "any device"),
        (.stays, "\(HTMLWriter.shortened(page.sourceName, to: InspectionPage.maximumDeviceNameLength)) only"),
        (.lost, "damaged"),
      ])
  }

  private func row(_ item: KeychainEntry) -> PageTable.Row {
    let (style, symbol, result): (PageTable.Style, String, String) =
      switch backup.portability(of: item) {
      case .anyDevice: (.moves, "+", "any device")
      case .sameDevice: (.stays, "<", "\(page.sourceName) only")
      case .noDevice: (.stays, "<", "no device")
      case .damaged: (.lost, "!", "cannot be read")
      }
    let app = backup.apps.app(of: item.identity)
    return PageTable.Row(
      style: style, symbol: symbol, item: ItemLabel(item.identity, index: item.index), kind: item.identity.kind,
      app: app.kind == .encrypted ? "" : app.displayName, protection: item.protection, result: result,
      detail: item.reason?.rawValue)
  }
}
