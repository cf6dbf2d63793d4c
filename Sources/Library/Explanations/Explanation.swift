package import KeyhaulKit

/// A page of `explain` about a word in reports, an exit code, or one of Apple's errors: the rule, the effect and the
/// recommended action.
///
/// `explain`, the reports and docs/Rules.md all take their sentences from these pages.
public struct Explanation: Sendable, Hashable {
  /// The word in reports, in JSON and in `explain`.
  public let id: String
  /// The exit code, if the page is about one.
  public let code: Int32?
  /// Apple's number, if the page is about an Apple error: an `OSStatus`, or a number of `MBErrorDomain`.
  public let number: Int32?
  /// The meaning in a few words.
  public let headline: String
  /// The rule of the platform or of the program.
  public let rule: String
  /// The effect for the user.
  public let effect: String
  /// The recommended action.
  public let action: String
  /// The other methods that may move an item, if the page is about a reason why it stays behind.
  public let otherWays: String?
  /// The items that are in no backup, such as "keys of a token", if the page is about a reason why they are not.
  package let absentItems: String?
  /// The publication of the rule; `nil` if the rule is Keyhaul's own.
  public let source: String?

  package init(
    id: String, code: Int32? = nil, number: Int32? = nil, headline: String, rule: String, effect: String,
    action: String, otherWays: String? = nil, absentItems: String? = nil, source: String? = nil
  ) {
    self.id = id
    self.code = code
    self.number = number
    self.headline = headline
    self.rule = rule
    self.effect = effect
    self.action = action
    self.otherWays = otherWays
    self.absentItems = absentItems
    self.source = source
  }
}

extension Explanation {
  /// Returns the page as text.
  package func lines(style: TextStyle) -> [String] {
    let heading = code.map { "\(id) (exit code \($0))" } ?? numberOutsideName.map { "\(id) (\($0))" } ?? id
    var lines = WordWrap.lines(of: style.adapted("\(heading) — \(headline)"), columns: style.width)
    if let first = lines.first { lines[0] = style.painted(first, .bold) }
    let paragraphs: [(label: String, text: String?)] = [
      (label: "Rule", text: rule), (label: "Effect", text: effect), (label: "Do", text: action),
      (label: "Ways", text: otherWays), (label: "Source", text: source),
    ]
    for case (let label, let text?) in paragraphs {
      lines += WordWrap.labeled(
        "  " + DisplayWidth.padded(label, columns: 8) + " ", style.adapted(text), columns: style.width)
    }
    return lines
  }

  /// Apple's number; `nil` if there is none or if the id ends with it.
  private var numberOutsideName: Int32? { number.flatMap { id.hasSuffix("/\($0)") ? nil : $0 } }
}
