import KeyhaulKit

/// A list of steps with a checkbox for each, for the screen or for paper. It needs no script.
struct Checklist {
  /// A step of the list.
  struct Entry {
    /// The name of the app or other subject, from a backup; empty if the text contains it.
    var name = ""
    let text: String
    /// The affected items.
    var items: [ItemLabel] = []
    /// The number of affected items that are not in `items`.
    var unnamedCount = 0
    /// The parts of the step, one sentence each.
    var details: [String] = []
    var commands: [String] = []
  }

  /// Steps with a common title.
  struct Group {
    let title: String
    var note: String?
    let entries: [Entry]
  }

  /// The heading of the list.
  let title: String
  /// A name at the end of the heading; empty if there is none. Untrusted.
  var name = ""
  /// A remark below the heading.
  var note: String?
  let groups: [Group]

  /// The maximum number of listed entries of a group.
  static let maximumEntryCount = 100
  /// The maximum number of named items of an entry.
  static let maximumNameCount = 5

  /// Writes the list. Its checkboxes have numbered identifiers, so a page can contain only one list.
  func write(to page: inout HTMLWriter) {
    let groups = groups.filter { !$0.entries.isEmpty }
    guard !groups.isEmpty else { return }
    page.newLine()
    page.element("section", ["class": "checklist"]) { page in
      page.element("h2") { page in
        page.text(title)
        if !name.isEmpty {
          page.text(" ")
          page.name(name)
        }
      }
      if let note { page.element("p", ["class": "muted"], note) }
      var boxNumber = 0
      for group in groups {
        write(group, firstBoxNumber: boxNumber + 1, to: &page)
        boxNumber += min(group.entries.count, Self.maximumEntryCount)
      }
    }
  }

  private func write(_ group: Group, firstBoxNumber: Int, to page: inout HTMLWriter) {
    page.element("h3", group.title)
    if let note = group.note { page.element("p", ["class": "muted"], note) }
    page.element("ul") { page in
      for (index, entry) in group.entries.prefix(Self.maximumEntryCount).enumerated() {
        write(entry, boxNumber: firstBoxNumber + index, to: &page)
      }
    }
    let omittedCount = group.entries.count - Self.maximumEntryCount
    if omittedCount > 0 {
      page.element("p", ["class": "more"], "\(HumanReadable.grouped(omittedCount)) more are in the table below.")
    }
  }

  private func write(_ entry: Entry, boxNumber: Int, to page: inout HTMLWriter) {
    let id = "box-\(boxNumber)"
    page.newLine()
    page.element("li") { page in
      page.voidElement("input", ["type": "checkbox", "id": id])
      page.element("label", ["for": id]) { page in
        if !entry.name.isEmpty {
          page.element("b") { $0.name(entry.name) }
          page.text(": ")
        }
        page.text(entry.text)
        if !entry.items.isEmpty { writeItems(of: entry, to: &page) }
      }
      if !entry.details.isEmpty {
        page.element("div", ["class": "details"]) { page in
          for detail in entry.details { page.element("p", detail) }
        }
      }
      if !entry.commands.isEmpty { StepList.write(entry.commands, to: &page) }
    }
  }

  private func writeItems(of entry: Entry, to page: inout HTMLWriter) {
    let moreCount = entry.unnamedCount + max(0, entry.items.count - Self.maximumNameCount)
    page.element("small") { page in
      for (index, item) in entry.items.prefix(Self.maximumNameCount).enumerated() {
        if index > 0 { page.text(", ") }
        item.write(to: &page)
      }
      if moreCount > 0 { page.text(" and \(HumanReadable.grouped(moreCount)) more") }
    }
  }
}
