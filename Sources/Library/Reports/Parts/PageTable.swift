import KeyhaulKit

/// A collapsed table of items, with filters that consist only of radio buttons and style rules.
struct PageTable {
  /// The outcome of an item. The raw value is the CSS class of its row, which the filters use.
  enum Style: String, CaseIterable {
    case moves = "m"
    case stays = "s"
    case lost = "u"
    case gone = "r"
  }

  struct Row {
    let style: Style
    let symbol: String
    let item: ItemLabel
    let kind: ItemKind
    /// The name of the item's app; empty if it is unknown.
    let app: String
    let protection: ProtectionClass?
    let result: String
    var detail: String?
  }

  let title: String
  /// The heading of the last column.
  let resultTitle: String
  let rows: [Row]
  /// The names of the filters by style; empty for a table without filters. Only one table of a page can have filters.
  var filters: [(style: Style, name: String)] = []
  var isExpanded = false
  /// A remark about all rows.
  var note: String?

  /// The number of rows in each table body. A browser lays out a body only when it becomes visible.
  static let rowsPerBody = 50

  func write(to page: inout HTMLWriter) {
    guard !rows.isEmpty else { return }
    page.newLine()
    page.element("details", isExpanded ? ["class": "items", "open": "open"] : ["class": "items"]) { page in
      page.element("summary") { $0.element("h2", title) }
      if let note { page.element("p", ["class": "more"], note) }
      if !filters.isEmpty { writeFilters(&page) }
      page.element("table", ["class": "rows"]) { page in
        page.element("thead") { page in
          page.element("tr") { page in
            page.element("th", ["scope": "col"]) { $0.element("span", ["class": "unseen"], "Sign") }
            for title in ["Item", "App", "Protection", resultTitle] { page.element("th", ["scope": "col"], title) }
          }
        }
        for start in stride(from: 0, to: rows.count, by: Self.rowsPerBody) {
          page.element("tbody") { page in
            for row in rows[start...].prefix(Self.rowsPerBody) { write(row, to: &page) }
          }
        }
      }
    }
  }

  private func write(_ row: Row, to page: inout HTMLWriter) {
    page.newLine()
    page.element("tr", ["class": "\(row.style.rawValue) \(row.kind.filterClass)"]) { page in
      page.element("td", row.symbol)
      page.element("td") { page in
        page.element("b") { $0.text(HTMLWriter.shortened(row.item.name)) }
        if let account = row.item.account { page.element("i", HTMLWriter.shortened(account)) }
        page.element("small", row.kind.noun)
      }
      page.element("td", HTMLWriter.shortened(row.app))
      page.element("td", row.protection?.phrase ?? "unknown")
      page.element("td") { page in
        page.text(row.result)
        if let detail = row.detail { page.element("small", HTMLWriter.shortened(detail)) }
      }
    }
  }

  // MARK: Filters

  private struct FilterOption {
    let id: String
    let name: String
    let count: Int
  }

  /// A group of options. One option is always chosen. The first shows all rows.
  private struct FilterGroup {
    let name: String
    let legend: String
    let options: [FilterOption]
  }

  /// The groups of filters, without groups that would have only one option.
  private var filterGroups: [FilterGroup] {
    var styleCounts: [Style: Int] = [:]
    var kindCounts: [ItemKind: Int] = [:]
    for row in rows {
      styleCounts[row.style, default: 0] += 1
      kindCounts[row.kind, default: 0] += 1
    }
    let outcomeOptions = filters.compactMap { style, name in
      styleCounts[style].map { FilterOption(id: style.rawValue, name: name, count: $0) }
    }
    let kindOptions = ItemKind.allCases.compactMap { kind in
      kindCounts[kind].map { FilterOption(id: kind.filterClass, name: kind.noun, count: $0) }
    }
    func group(_ name: String, legend: String, _ options: [FilterOption]) -> FilterGroup? {
      guard options.count > 1 else { return nil }
      let allOption = FilterOption(id: "all-" + name, name: "all", count: rows.count)
      return FilterGroup(name: name, legend: legend, options: [allOption] + options)
    }
    return [
      group("outcome", legend: "Show by \(resultTitle.lowercased())", outcomeOptions),
      group("kind", legend: "Show by kind", kindOptions),
    ].compactMap(\.self)
  }

  private func writeFilters(_ page: inout HTMLWriter) {
    let groups = filterGroups
    // The radio buttons are siblings of the table, so that the style rules for rows are fast.
    for group in groups {
      for (index, option) in group.options.enumerated() {
        if index == 0 {
          page.voidElement(
            "input", ["type": "radio", "name": group.name, "id": "show-" + option.id, "checked": "checked"])
        } else {
          page.voidElement("input", ["type": "radio", "name": group.name, "id": "show-" + option.id])
        }
      }
    }
    for group in groups {
      page.element("fieldset", ["class": "filter"]) { page in
        page.element("legend", ["class": "unseen"], group.legend)
        for option in group.options {
          page.element("label", ["for": "show-" + option.id]) { page in
            page.text(option.name + " ")
            page.element("span", HumanReadable.grouped(option.count))
          }
        }
      }
    }
  }
}

extension ItemKind {
  /// The CSS class of rows of this kind.
  fileprivate var filterClass: String {
    switch self {
    case .genericPassword: "g"
    case .internetPassword: "i"
    case .certificate: "c"
    case .key: "k"
    }
  }
}
