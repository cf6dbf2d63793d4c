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
          + more(group.entries.count - Self.maximumEntryCount, style)
      } + [""]
  }

  private func lines(of entry: Entry, _ style: TextStyle, isShort: Bool) -> [String] {
    let indent = isShort ? "  " : "    "
    let text = entry.name.isEmpty ? entry.text : "\(HTMLWriter.shortened(entry.name)): \(entry.text)"
    let named = entry.items.prefix(Self.maximumNameCount).map { [$0.name, $0.account].compactMap(\.self) }
    let moreCount = entry.unnamedCount + max(0, entry.items.count - Self.maximumNameCount)
    let names =
      named.map { HTMLWriter.shortened($0.joined(separator: " · ")) }
      + (moreCount > 0 ? ["\(HumanReadable.grouped(moreCount)) more"] : [])
    let texts =
      [("\(indent)[ ] ", text)] + (entry.items.isEmpty ? [] : [("\(indent)    ", names.joined(separator: ", "))])
      + entry.details.map { ("\(indent)    ", $0) }
    return texts.flatMap { label, text in
      WordWrap.labeled(label, style.adapted(UntrustedText.escaped(text)), columns: style.width)
    } + entry.commands.map { "\(indent)    " + style.adapted(UntrustedText.escaped($0)) }
  }

  private func more(_ count: Int, _ style: TextStyle) -> [String] {
    count > 0 ? ["    \(style.ellipsis) \(HumanReadable.grouped(count)) more"] : []
  }
}
