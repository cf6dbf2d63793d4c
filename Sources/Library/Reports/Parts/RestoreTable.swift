import KeyhaulKit

/// A table of restores, with a row for each backup and a column for each target.
struct RestoreTable {
  /// The outcome of one restore.
  struct Cell {
    /// Whether the page is about this restore.
    var isCurrent = false
    let count: Int
    /// The text after the count: "of 18 items".
    let unit: String
    /// The texts below the count, in small print.
    let details: [String]
  }

  /// The titles of all columns except the first, which names the backups.
  let columnTitles: [HTMLWriter.Body]
  let rows: [(backup: String, cells: [Cell])]

  func write(to page: inout HTMLWriter) {
    page.newLine()
    page.element("table", ["class": "plain four"]) { page in
      page.element("thead") { page in
        page.element("tr") { page in
          page.element("th", ["scope": "col"]) { $0.element("span", ["class": "unseen"], "Backup") }
          for title in columnTitles { page.element("th", ["scope": "col"], title) }
        }
      }
      page.element("tbody") { page in
        for row in rows {
          page.element("tr") { page in
            page.element("th", ["scope": "row"], row.backup)
            for cell in row.cells { cell.write(to: &page) }
          }
        }
      }
    }
  }
}

extension RestoreTable.Cell {
  fileprivate func write(to page: inout HTMLWriter) {
    page.element("td", ["class": isCurrent ? "current" : "other"]) { page in
      page.element("b", HumanReadable.grouped(count))
      page.text(" \(unit)")
      if !details.isEmpty { page.element("small", details.joined(separator: " · ")) }
    }
  }

  /// Returns the number of items that stay behind: "4 stay behind".
  static func staysBehind(_ count: Int) -> String {
    "\(HumanReadable.grouped(count)) \(count == 1 ? "stays" : "stay") behind"
  }

  /// Returns the number of unreadable items, such as "2 cannot be read"; `nil` if it is 0.
  static func unreadable(_ count: Int) -> String? {
    count > 0 ? "\(HumanReadable.grouped(count)) cannot be read" : nil
  }
}
