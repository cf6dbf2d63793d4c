import KeyhaulKit

extension Checklist {
  /// The list with a box to tick before each entry.
  func lines(style: TextStyle) -> [String] {
    let groups = groups.filter { !$0.entries.isEmpty }
    guard !groups.isEmpty else { return [] }
    let head = style.adapted(HostileText.shown(name.isEmpty ? title : "\(title) \(name)"))
    return [style.painted(head, .bold)]
      + groups.flatMap { group in
        ["  " + style.adapted(HostileText.shown(group.title))]
          + group.entries.prefix(Self.maximumEntryCount).flatMap { lines(of: $0, style) }
          + more(group.entries.count - Self.maximumEntryCount, style)
      } + [""]
  }

  private func lines(of entry: Entry, _ style: TextStyle) -> [String] {
    let text = entry.name.isEmpty ? entry.words : "\(Markup.shortened(entry.name)): \(entry.words)"
    let named = entry.items.prefix(Self.maximumNameCount).map { [$0.name, $0.account].compactMap(\.self) }
    let rest = entry.unnamedCount + max(0, entry.items.count - Self.maximumNameCount)
    let names =
      named.map { Markup.shortened($0.joined(separator: " · ")) } + (rest > 0 ? ["\(Amounts.grouped(rest)) more"] : [])
    let isNamed = !entry.items.isEmpty
    return ([("    [ ] ", text)] + (isNamed ? [("        ", names.joined(separator: ", "))] : []))
      .flatMap { label, words in
        WordWrap.labeled(label, style.adapted(HostileText.shown(words)), columns: style.width)
      } + entry.commands.map { "        " + style.adapted(HostileText.shown($0)) }
  }

  private func more(_ count: Int, _ style: TextStyle) -> [String] {
    count > 0 ? ["    \(style.ellipsis) \(Amounts.grouped(count)) more"] : []
  }
}
