/// A page of `explain`: a word of reports or an exit code, the rule behind it, what it means and what to do.
///
/// The one table of words: `explain`, the reports and docs/Rules.md take their sentences from it.
public struct Explanation: Sendable, Hashable {
  /// The word itself, as reports, JSON and `explain` use it.
  public let id: String
  /// The exit code, where it is one.
  public let code: Int32?
  /// What it comes to, in a few words.
  public let headline: String
  /// The rule of the platform or of the program.
  public let rule: String
  /// What it means for the person.
  public let effect: String
  /// What to do about it.
  public let action: String
  /// On which other ways the item may come to another device; of a reason that keeps it.
  public let otherWays: String?
  /// Where the rule is published; `nil` for what is the program's own.
  public let source: String?

  package init(
    id: String, code: Int32? = nil, headline: String, rule: String, effect: String, action: String,
    otherWays: String? = nil, source: String? = nil
  ) {
    self.id = id
    self.code = code
    self.headline = headline
    self.rule = rule
    self.effect = effect
    self.action = action
    self.otherWays = otherWays
    self.source = source
  }
}
