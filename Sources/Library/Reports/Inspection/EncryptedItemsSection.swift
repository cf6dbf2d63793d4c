import KeyhaulKit

/// The section about items that cannot be decrypted, counted by reason, kind and class; nothing if there are none.
struct EncryptedItemsSection {
  private let groups: [UndecryptedItems.Group]

  init(_ groups: [UndecryptedItems.Group]) { self.groups = groups }

  func write(to page: inout HTMLWriter) {
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
              for text in [
                ItemText.kind(group.kind), ItemText.protection(group.protection), HumanReadable.grouped(group.count),
              ] {
                page.element("td", text)
              }
            }
          }
        }
      }
    }
  }
}
