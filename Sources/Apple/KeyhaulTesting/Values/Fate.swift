// This file exports `Reason` for tests, which write `.staysBehind(.deviceBound)`. No other file may import `Reason`
// alone: the compiler would use only one of the two imports, perhaps the import that is not exported.
import Basics

@_exported public import enum KeychainRules.Reason

/// The outcome for an item in a move, for comparisons in tests: `move["session token"] == .migrates`.
///
/// A failed expectation prints the description of the move's outcome: the item, the reason and what to do. Comparisons
/// ignore the description.
public struct Fate: Sendable, Equatable {
  enum Kind: Sendable, Hashable {
    case migrates
    case staysBehind(Reason)
    case neverInBackup(Reason)
    case unreadable(Reason)
    case absent
    /// Several items have the name and different outcomes, or an item whose names cannot be read may have it.
    case unclear
    /// The phone has no items.
    case nothingStored
  }

  let kind: Kind
  /// The description, or `nil` if the outcome is a test's expectation.
  let details: String?

  init(_ kind: Kind, details: String? = nil) {
    self.kind = kind
    self.details = details
  }

  /// The item moves to the target phone.
  public static let migrates = Fate(.migrates)

  /// The item is in the backup but does not move.
  public static func staysBehind(_ reason: Reason) -> Fate { Fate(.staysBehind(reason)) }

  /// The item never enters a backup. Examples are items that exist only while a passcode is set, keys on a token, and
  /// items that require authentication.
  public static func neverInBackup(_ reason: Reason) -> Fate { Fate(.neverInBackup(reason)) }

  /// The item is damaged.
  public static func unreadable(_ reason: Reason) -> Fate { Fate(.unreadable(reason)) }

  /// The phone has items, but none with the name. This outcome requires that the names of all items can be read.
  /// Otherwise, a damaged item may have the name, and the result equals no outcome.
  public static let absent = Fate(.absent)

  /// The reason why the item does not arrive, or the reason that several items with the name have in common. `nil` if
  /// the item arrives, if there is no item, or if several items have different outcomes.
  public var reason: Reason? {
    switch kind {
    case .staysBehind(let reason), .neverInBackup(let reason), .unreadable(let reason): reason
    case .migrates, .absent, .unclear, .nothingStored: nil
    }
  }

  var isDamage: Bool { if case .unreadable = kind { true } else { false } }

  /// Returns whether both are the same outcome for the same reason.
  ///
  /// Three outcomes are equal to nothing, not even to themselves:
  ///
  /// - a name whose items have different outcomes
  /// - a name without an item, if the names of a damaged item cannot be read
  /// - any name on a phone without items
  public static func == (left: Fate, right: Fate) -> Bool { left.isComparable && left.kind == right.kind }

  /// Returns whether both are different outcomes of existing items. A name without an item is neither equal nor unequal
  /// to the outcome of an item. A mistyped name therefore also fails a test that uses `!=`.
  public static func != (left: Fate, right: Fate) -> Bool {
    left.isComparable && right.isComparable && left.kind != right.kind
      && (left.kind == .absent) == (right.kind == .absent)
  }

  private var isComparable: Bool {
    switch kind {
    case .migrates, .staysBehind, .neverInBackup, .unreadable, .absent: true
    case .unclear, .nothingStored: false
    }
  }
}

extension Fate: CustomStringConvertible {
  /// The description with the item and the reason. An outcome that a test expects has only its reason, such as
  /// `stays behind (device-bound)`.
  public var description: String { details ?? reason.map { "\(verb) (\($0.rawValue))" } ?? verb }

  /// The outcome without its reason, such as `stays behind`.
  var verb: String {
    switch kind {
    case .migrates: "migrates"
    case .staysBehind: "stays behind"
    case .neverInBackup: "is never in a backup"
    case .unreadable: "is damaged"
    case .absent: "is not on the phone"
    case .unclear: "has no single fate"
    case .nothingStored: "nothing is on the phone"
    }
  }
}
