// Exported to tests, which write `.staysBehind(.deviceBound)`. No other file imports this name alone: of two such
// imports the compiler keeps the first, exported or not.
import Basics

@_exported public import enum KeychainRules.Reason

/// What becomes of an item in a move, for a test to compare with: `move["session token"] == .migrates`.
///
/// A fate that a move gives also tells its story: printed, as a failed expectation prints it, it names the item, the
/// reason and what to do. The story takes no part in comparisons.
public struct Fate: Sendable, Equatable {
  enum Kind: Sendable, Hashable {
    case migrates
    case staysBehind(Reason)
    case neverInBackup(Reason)
    case unreadable(Reason)
    case absent
    /// Several items have the name and not all share a fate, or an item may have it whose names nobody can read.
    case unclear
    /// The phone holds no item at all.
    case nothingStored
  }

  let kind: Kind
  /// `nil` for a fate that a test expects.
  let story: String?

  init(_ kind: Kind, story: String? = nil) {
    self.kind = kind
    self.story = story
  }

  /// The item is on the other phone afterwards.
  public static let migrates = Fate(.migrates)

  /// The item is in the backup and does not arrive.
  public static func staysBehind(_ reason: Reason) -> Fate { Fate(.staysBehind(reason)) }

  /// The item is in no backup of the phone: passcode-only items, keys that a token holds, items that ask for a person.
  public static func neverInBackup(_ reason: Reason) -> Fate { Fate(.neverInBackup(reason)) }

  /// The item is damaged.
  public static func unreadable(_ reason: Reason) -> Fate { Fate(.unreadable(reason)) }

  /// The phone holds items, and none has the name.
  public static let absent = Fate(.absent)

  /// The reason why the item does not arrive; `nil` if it arrives, or if the fate covers several items.
  public var reason: Reason? {
    switch kind {
    case .staysBehind(let reason), .neverInBackup(let reason), .unreadable(let reason): reason
    case .migrates, .absent, .unclear, .nothingStored: nil
    }
  }

  var isDamage: Bool { if case .unreadable = kind { true } else { false } }

  /// Whether the two are the same outcome for the same reason.
  ///
  /// What several items with different fates share is no fate, and neither is one on a phone that holds nothing: these
  /// are equal to nothing, not even to each other.
  public static func == (left: Fate, right: Fate) -> Bool { left.isFate && left.kind == right.kind }

  /// Whether the two are different outcomes of items that there are. A name that no item has is neither equal nor
  /// unequal to what becomes of one, so that a mistyped name fails a test that uses `!=` as well.
  public static func != (left: Fate, right: Fate) -> Bool {
    left.isFate && right.isFate && left.kind != right.kind && (left.kind == .absent) == (right.kind == .absent)
  }

  private var isFate: Bool {
    switch kind {
    case .migrates, .staysBehind, .neverInBackup, .unreadable, .absent: true
    case .unclear, .nothingStored: false
    }
  }
}

extension Fate: CustomStringConvertible {
  /// The story where there is one; else the outcome with its reason, such as `stays behind (device-bound)`.
  public var description: String { story ?? reason.map { "\(verb) (\($0.rawValue))" } ?? verb }

  /// The outcome alone, such as `stays behind`.
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
