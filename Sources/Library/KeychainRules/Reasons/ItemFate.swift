/// What becomes of an item in a move, in one word: that of plans, expectations, documents and pages.
///
/// The raw value is the word that JSON, reports and `explain` use.
public enum ItemFate: String, Sendable, Hashable, CaseIterable, Codable {
  /// It is on the target afterwards: it arrives, or the same or a newer one is there.
  case migrates
  /// A rule keeps it where it is.
  case staysBehind = "stays-behind"
  /// It is in the archive and damaged.
  case unreadable
  /// No item of the plan is meant.
  case absent
  /// Several items are meant and not all share a fate: equal to none of the others, so that a test fails.
  case ambiguous
}
