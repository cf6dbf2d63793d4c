import KeyhaulKit

/// The items that do not open, counted by as much as they say of themselves; nothing where all open.
struct SealedSection {
  private let groups: [SealedItems.Group]

  init(_ groups: [SealedItems.Group]) { self.groups = groups }

  func write(to page: inout Markup) {
    guard !groups.isEmpty else { return }
    page.newLine()
    page.element("section") { page in
      page.element("h2", "Encrypted items")
      page.element("table", ["class": "plain"]) { page in
        page.element("thead") { page in
          page.element("tr") { page in
            for title in ["Why", "Kind", "Protection", "Items"] { page.element("th", ["scope": "col"], title) }
          }
        }
        page.element("tbody") { page in
          for group in groups {
            page.element("tr") { page in
              page.element("th", ["scope": "row"], group.reason.rawValue)
              for words in [
                ItemText.kind(group.kind), ItemText.protection(group.protection), Amounts.grouped(group.count),
              ] {
                page.element("td", words)
              }
            }
          }
        }
      }
    }
  }
}
