import KeychainFormats
import Migration

/// The apps in which a person has something to do after the move, those with the most losses first.
struct SignInAgain {
  let shares: [AppShare]
  let targetName: String
  let showsAll: Bool

  func lines(style: TextStyle) -> [String] {
    let losing = shares.filter { !$0.losses.isEmpty }
    let known = losing.filter { $0.app.kind != .unknown }
    let unknown = losing.filter { $0.app.kind == .unknown }.reduce(0) { $0 + $1.losses.count }
    guard !known.isEmpty else { return [] }
    let shown = showsAll ? known[...] : known.prefix(ItemLines.shortGroup)
    let names = shown.map {
      HostileText.shown(AppText.name($0.app), columns: max(Table.narrowestColumn, style.width / 2 - 8))
    }
    let counts = shown.map { Amounts.count($0.losses.count, "item") }
    let nameWidth = names.map(DisplayWidth.columns(of:)).max() ?? 0
    let countWidth = counts.map(\.count).max() ?? 0
    let title = "Sign in again on \(targetName), or move by hand (\(Amounts.grouped(known.count)))"
    var lines = WordWrap.lines(of: style.adapted(HostileText.shown(title)), columns: style.width)
    for index in lines.indices { lines[index] = style.painted(lines[index], .yellow) }
    for (share, (name, count)) in zip(shown, zip(names, counts)) {
      let label =
        "  " + DisplayWidth.padded(style.adapted(name), columns: nameWidth) + "  "
        + DisplayWidth.padded(count, columns: countWidth, rightAligned: true) + "  "
      let what = share.losses.prefix(3).map { AppText.short($0.identity) }
      let more = share.losses.count > what.count ? ", \(style.ellipsis)" : ""
      let text = style.adapted(HostileText.shown(what.joined(separator: ", "))) + more
      lines += WordWrap.labelled(label, text, columns: style.width)
    }
    if shown.count < known.count {
      lines.append("  \(style.ellipsis) \(Amounts.grouped(known.count - shown.count)) more (-v shows all)")
    }
    if unknown > 0 {
      let text = "\(Amounts.count(unknown, "sealed item")) more: whose they are is sealed with them"
      lines += WordWrap.labelled("  ", text, columns: style.width)
    }
    return lines + [""]
  }
}
