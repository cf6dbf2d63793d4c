import KeyhaulKit

/// A table of restores: a row for each backup that they come from, a column for each device that they go to.
struct RestoreTable {
  /// What one restore brings.
  struct Cell {
    /// Whether it is the one that the page is about.
    var isCurrent = false
    let count: Int
    /// What follows the count: "of 18 items".
    let unit: String
    /// What is said below it, in small print.
    let details: [String]
  }

  /// What stands above each column but the first, which names the backups.
  let columns: [Markup.Body]
  let rows: [(backup: String, cells: [Cell])]

  func write(to page: inout Markup) {
    page.newLine()
    page.element("table", ["class": "plain four"]) { page in
      page.element("thead") { page in
        page.element("tr") { page in
          page.element("th", ["scope": "col"]) { $0.element("span", ["class": "unseen"], "Backup") }
          for column in columns { page.element("th", ["scope": "col"], column) }
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
  fileprivate func write(to page: inout Markup) {
    page.element("td", ["class": isCurrent ? "current" : "other"]) { page in
      page.element("b", Amounts.grouped(count))
      page.words(" \(unit)")
      if !details.isEmpty { page.element("small", details.joined(separator: " · ")) }
    }
  }

  /// "4 stay behind"
  static func staysBehind(_ count: Int) -> String {
    "\(Amounts.grouped(count)) \(count == 1 ? "stays" : "stay") behind"
  }

  /// "2 cannot be read", and nothing where all can.
  static func unreadable(_ count: Int) -> String? {
    count > 0 ? "\(Amounts.grouped(count)) cannot be read" : nil
  }
}
