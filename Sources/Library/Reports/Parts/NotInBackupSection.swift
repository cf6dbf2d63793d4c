import KeyhaulKit

/// The section about items of the source device that are not in the backup, with a card for each reason.
struct NotInBackupSection {
  let sourceDeviceItems: SourceDeviceItems?

  func write(to page: inout HTMLWriter) {
    guard let sourceDeviceItems else { return }
    page.newLine()
    page.element("section") { page in
      page.element("h2") { page in
        page.text("On ")
        page.name(sourceDeviceItems.device)
        page.text(" but not in the backup: \(HumanReadable.count(sourceDeviceItems.absent.count, "item"))")
      }
      page.element("p", ["class": "muted"], sourceDeviceItems.statement)
      for reason in Reason.allCases {
        let items = sourceDeviceItems.absent.filter { $0.reason == reason }
        guard !items.isEmpty else { continue }
        // The items have no index, because they are not in the backup.
        ReasonCard(
          reason: reason, style: reason.isDamage ? .lost : .stays, items: items.map { .init(nil, $0.identity) },
          outcome: reason.isDamage ? "Cannot be read on the device" : "Never in a backup"
        ).write(to: &page)
      }
      Self.write(sourceDeviceItems.addedSince, to: &page)
    }
  }

  /// Writes the items that a new backup would contain, because no rule excludes them.
  private static func write(_ items: [SourceDeviceItems.Item], to page: inout HTMLWriter) {
    guard !items.isEmpty else { return }
    page.element("article", ["class": "card stays"]) { page in
      page.element("p", ["class": "count"]) { $0.element("b", HumanReadable.count(items.count, "item")) }
      page.element("h3", "Not in this backup, although a new backup would contain \(items.count == 1 ? "it" : "them")")
      page.element("p", ["class": "do"]) { page in
        page.element("strong", "What to do. ")
        page.text("Make a new backup.")
      }
      NameList(items.map { ItemLabel($0.identity, index: nil) }).write(
        collapsingAfter: ReasonCard.maximumListCount, to: &page)
    }
  }

  /// Returns the tile with the number of items that are not in the backup; empty if the source device is unavailable.
  static func tile(_ sourceDeviceItems: SourceDeviceItems?) -> [Tiles.Tile] {
    guard let sourceDeviceItems else { return [] }
    return [.init(style: .lost, symbol: "x", count: sourceDeviceItems.absent.count, text: "not in the backup")]
  }
}
