import KeyhaulKit

/// A card with a reason why items do not arrive, cannot be decrypted or may be unusable, and with the recommended
/// action.
struct ReasonCard {
  struct Item {
    /// The index of the item in the backup; `nil` if the item is not in a backup.
    let index: Int?
    let label: ItemLabel

    init(_ index: Int?, _ identity: ItemDescriptor) {
      self.index = index
      label = ItemLabel(identity, index: index)
    }
  }

  let explanation: Explanation
  let style: Tiles.Style
  let items: [Item]
  /// The outcome for the items, such as "Lost either way", if the page has cards of several outcomes.
  var outcome: String?

  init(reason: Reason, style: Tiles.Style, items: [Item], outcome: String? = nil) {
    self.init(explanation: reason.explanation, style: style, items: items)
    self.outcome = outcome
  }

  init(explanation: Explanation, style: Tiles.Style, items: [Item]) {
    self.explanation = explanation
    self.style = style
    self.items = items
  }

  /// The maximum number of items that a card names. The table below contains all items.
  static let maximumListCount = 10

  func write(to page: inout HTMLWriter) {
    page.element("article", ["class": "card \(style.rawValue)"]) { page in
      page.element("p", ["class": "count"]) { page in
        page.element("b", HumanReadable.count(items.count, "item"))
        if let outcome { page.text(outcome) }
        page.element("code", explanation.id)
      }
      page.element("h3", explanation.headline.prefix(1).uppercased() + explanation.headline.dropFirst())
      page.element("p", explanation.rule + " " + explanation.effect)
      page.element("p", ["class": "do"]) { page in
        page.element("strong", "What to do. ")
        page.text(explanation.action)
      }
      // If there is nothing to do, no other way is needed.
      if let otherWays = explanation.otherWays, explanation.action != "Nothing." {
        page.element("p") { page in
          page.element("strong", "Other ways. ")
          page.text(otherWays)
        }
      }
      writeNames(&page)
    }
  }

  /// Writes the names of items, and the number of items whose names are encrypted.
  private func writeNames(_ page: inout HTMLWriter) {
    let namedItems = items.filter { !$0.label.isEncrypted }
    let encryptedItems = items.filter(\.label.isEncrypted)
    NameList(namedItems.prefix(Self.maximumListCount).map(\.label)).write(to: &page)
    if namedItems.count > Self.maximumListCount {
      page.element(
        "p", ["class": "more"],
        "\(HumanReadable.grouped(namedItems.count - Self.maximumListCount)) more are in the table below."
      )
    }
    guard !encryptedItems.isEmpty else { return }
    let subject =
      encryptedItems.count == 1
      ? "The name of 1 item is" : "The names of \(HumanReadable.count(encryptedItems.count, "item")) are"
    page.element(
      "p", ["class": "more"],
      "\(subject) encrypted too, so Keyhaul cannot say which apps "
        + "\(encryptedItems.count == 1 ? "it belongs" : "they belong") to.")
  }
}
