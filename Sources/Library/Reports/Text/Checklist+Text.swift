import KeyhaulKit

extension Checklist {
  /// Returns the lines of the checklist, with a box before each entry.
  ///
  /// - Parameters:
  ///   - style: The width and the colors of the output.
  ///   - isShort: Whether to leave out the titles of groups.
  func lines(style: TextStyle, isShort: Bool) -> [String] {
    let groups = groups.filter { !$0.entries.isEmpty }
    guard !groups.isEmpty else { return [] }
    let heading = style.adapted(UntrustedText.escaped(name.isEmpty ? title : "\(title) \(HTMLWriter.shortened(name))"))
    return WordWrap.lines(of: heading, columns: style.width).map { style.painted($0, .bold) }
      + groups.flatMap { group in
        (isShort ? [] : ["  " + style.adapted(UntrustedText.escaped(group.title))])
          + group.entries.prefix(Self.maximumEntryCount).flatMap { lines(of: $0, style, isShort: isShort) }
          + omissionLines(group.entries.count - Self.maximumEntryCount, style)
      } + [""]
  }

  private func lines(of entry: Entry, _ style: TextStyle, isShort: Bool) -> [String] {
    let margin = isShort ? "  " : "    "
    let box = "[ ] "
    let indentation = margin + String(repeating: " ", count: box.count)
    func labeled(_ label: String, _ text: String) -> [String] {
      WordWrap.labeled(label, style.adapted(UntrustedText.escaped(text)), columns: style.width)
    }
    let text = entry.name.isEmpty ? entry.text : "\(HTMLWriter.shortened(entry.name)): \(entry.text)"
    var lines = labeled(margin + box, text)
    if !entry.items.isEmpty { lines += labeled(indentation, Self.itemNames(of: entry)) }
    lines += entry.details.flatMap { labeled(indentation, $0) }
    return lines + entry.commands.map { indentation + style.adapted(UntrustedText.escaped($0)) }
  }

  /// Returns the first items of an entry, and the number of the others: "chat.example · anna, 3 more".
  private static func itemNames(of entry: Entry) -> String {
    var names = entry.items.prefix(maximumNameCount).map { item in
      HTMLWriter.shortened([item.name, item.account].compactMap(\.self).joined(separator: " · "))
    }
    let moreCount = entry.unnamedCount + max(0, entry.items.count - maximumNameCount)
    if moreCount > 0 { names.append("\(HumanReadable.grouped(moreCount)) more") }
    return names.joined(separator: ", ")
  }

  private func omissionLines(_ count: Int, _ style: TextStyle) -> [String] {
    count > 0 ? ["    \(style.ellipsis) \(HumanReadable.grouped(count)) more"] : []
  }
}
