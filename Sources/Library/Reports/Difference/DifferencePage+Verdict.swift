import KeyhaulKit

extension DifferencePage {
  /// "1 item is new, 2 changed, 1 is gone; 13 are the same."
  var verdict: String {
    let parts = [
      (difference.added.count, "is new", "are new"), (difference.changed.count, "changed", "changed"),
      (difference.removed.count, "is gone", "are gone"),
    ].filter { $0.0 > 0 }
    let same = difference.sameCount
    guard let first = parts.first else { return verdictWithoutNames + doubt + "." }
    let words = parts.map { "\(Amounts.grouped($0.0)) \($0.0 == 1 ? $0.1 : $0.2)" }
    // The first number says of what.
    let head = "\(Amounts.count(first.0, "item")) \(first.0 == 1 ? first.1 : first.2)"
    let rest = same == 0 ? "nothing is the same" : same == 1 ? "1 is the same" : "\(Amounts.grouped(same)) are the same"
    return ([head] + words.dropFirst()).joined(separator: ", ") + "; " + rest + doubt + "."
  }

  /// Where no item is known to be new, changed or gone.
  private var verdictWithoutNames: String {
    let same = difference.sameCount
    if minimumUnnamedCount > 0 {
      return
        "At least \(Amounts.count(minimumUnnamedCount, "item")) \(minimumUnnamedCount == 1 ? "differs" : "differ"), "
        + "but it is not known which"
    }
    if difference.sealed.total > 0 {
      return same == 0
        ? "None of the items can be compared" : "All comparable items are the same: \(Amounts.count(same, "item"))"
    }
    return same == 0
      ? "There is nothing to compare" : "Nothing differs: \(Amounts.count(same, "item")) on both sides"
  }

  /// "; 2 may be sealed on the other side"
  private var doubt: String {
    doubtfulCount == 0 ? "" : "; \(Amounts.grouped(doubtfulCount)) may be encrypted on the other side"
  }

  /// Items of one side that may be among the other's sealed ones.
  var doubtfulCount: Int { difference.doubtfulInFirst.count + difference.doubtfulInSecond.count }

  /// How many of those differ at the least: there are fewer sealed items than may be them.
  private var minimumUnnamedCount: Int {
    max(0, difference.doubtfulInFirst.count - difference.sealed.onlyInSecond)
      + max(0, difference.doubtfulInSecond.count - difference.sealed.onlyInFirst)
  }
}
