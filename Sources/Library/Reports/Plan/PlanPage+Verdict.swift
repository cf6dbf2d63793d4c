import KeyhaulKit

extension PlanPage {
  /// The plan in one sentence, which stands first.
  var verdict: String {
    let target = Markup.shortened(target.name)
    return arrival(on: target) + Explanation.warned(counts.byWarning) + removal + "."
      + (maker?.absence.map { " \($0)." } ?? "")
  }

  private var removal: String {
    guard counts.removed > 0 else { return "" }
    let items = Amounts.count(counts.removed, "item")
    let verb = counts.removed == 1 ? "is" : "are"
    if counts.migrates == 0 { return "; a restore would only remove \(items) there" }
    return counts.staysBehind + counts.unreadable == 0
      ? "; \(items) there \(verb) removed" : ", \(items) there \(verb) removed"
  }

  /// Of what all of them are: a backup does not hold everything that its device has.
  private var place: String { source.kind == .archive ? " in the backup" : "" }

  private func arrival(on target: String) -> String {
    let total = Amounts.grouped(counts.total)
    switch (counts.migrates, counts.total) {
    case (_, 0): return "There is nothing to move to \(target)"
    case (0, _) where counts.byReason[.backupNotEncrypted] != nil:
      return source.kind == .archive
        ? "Nothing can move to \(target), because the backup has no password"
        : "Nothing can move to \(target) in a backup without a password"
    case (0, 1): return "The only item cannot move to \(target)"
    case (0, _): return "None of \(total) items can move to \(target)"
    case (1, 1): return "The only item\(place) \(isReturn ? "comes back" : "moves") to \(target)"
    case (counts.total, _): return "All \(total) items\(place) \(isReturn ? "come back" : "move") to \(target)"
    default:
      let verb = counts.migrates == 1 ? (isReturn ? "comes back" : "moves") : isReturn ? "come back" : "move"
      let rest = [
        counts.staysBehind == 0
          ? nil : "\(Amounts.grouped(counts.staysBehind)) \(counts.staysBehind == 1 ? "stays" : "stay") behind",
        counts.unreadable == 0 ? nil : "\(Amounts.grouped(counts.unreadable)) cannot be read",
      ].compactMap(\.self)
      return "\(Amounts.grouped(counts.migrates)) of \(total) items \(verb) to \(target); "
        + rest.joined(separator: ", ")
    }
  }
}
