public import KeyhaulKit

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
  /// The items that no backup contains, such as "keys of a token", if the page is about a reason for that.
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

extension ProtectionClass {
  /// The explanation of the class: when its items can be read, and which devices they can be restored to.
  public var explanation: Explanation {
    Explanation(
      id: rawValue, headline: "\(phrase): the protection class \(constant)",
      rule: "An item of this class can be read \(readability).", effect: movement, action: advice,
      source: "Apple, \(constant); Apple Platform Security, \"Keychain data protection\"")
  }

  private var movement: String {
    if self == .whenPasscodeSetThisDeviceOnly { return "It is never in a backup, and never moves to another device." }
    return isThisDeviceOnly
      ? "It can be restored only to the source device, with or without a password."
      : "If the backup has a password, it moves to another device. Otherwise it can be restored only to the source "
        + "device."
  }

  private var advice: String {
    switch self {
    case .whenUnlocked, .afterFirstUnlock: "Give the backup a password."
    case .always: "Give the backup a password. Developers: choose a class that is not deprecated."
    case .whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly: Reason.deviceBound.explanation.action
    case .alwaysThisDeviceOnly: Reason.deviceBound.explanation.action
    case .whenPasscodeSetThisDeviceOnly: Reason.passcodeOnly.explanation.action
    }
  }
}

extension Explanation {
  /// The pages of the protection classes.
  package static let classes = ProtectionClass.allCases.map(\.explanation)
}

extension ArrivalWarning {
  private static let source =
    "Apple DTS, Developer Forums thread 786223 (only the Secure Enclave can unwrap such a key); a developer's trial, thread "
    + "119315 (on another device the key loads and does not work)"

  /// The explanation of the warning.
  public var explanation: Explanation {
    switch self {
    case .migratesButUnusable:
      Explanation(
        id: rawValue, headline: "the item moves, but its key is unusable on another device",
        rule: "The value has the format in which CryptoKit exports a Secure Enclave key (dataRepresentation), wrapped "
          + "so that only the source device's chip can use it. The format does not affect the protection class, so the "
          + "item moves like any password.",
        effect: "The item is on the new device, but signing or decrypting with the key fails there. The app has to "
          + "notice this and make a new key.",
        action: "Before the source device is erased, make sure that you can register a new key or sign in again. "
          + "Developers: keep such a key in a this-device-only class, so that the app notices its absence.",
        source: Self.source)
    case .useNotKnown:
      Explanation(
        id: rawValue, headline: "the item is restored, but it is not known whether its key still works",
        rule: "The value has the format in which CryptoKit exports a Secure Enclave key. The target is the source "
          + "device, or is not proven to be another one. No published source says whether the chip accepts such a key "
          + "after an erase and a restore.",
        effect: "The item is restored. On any device other than the one that made the key, the key is unusable.",
        action: "Before the device is erased, make sure that you can register a new key or sign in again.",
        source: Self.source)
    }
  }

  /// The text after a count of such items, such as "unusable there".
  package var countSuffix: String {
    switch self {
    case .migratesButUnusable: "unusable there"
    case .useNotKnown: "whose keys may not work there"
    }
  }

  /// Returns each count with its text: "1 unusable there".
  package static func countTexts(_ counts: [ArrivalWarning: Int]) -> [String] {
    allCases.compactMap { warning in counts[warning].map { "\(HumanReadable.grouped($0)) \(warning.countSuffix)" } }
  }
}

extension Explanation {
  /// Returns the last part of a sentence about arriving items: ", of them 1 unusable there". Empty if there are no
  /// warnings.
  package static func warningClause(for counts: [ArrivalWarning: Int]) -> String {
    let parts = ArrivalWarning.countTexts(counts)
    return parts.isEmpty ? "" : ", of them \(HumanReadable.list(parts))"
  }
}
