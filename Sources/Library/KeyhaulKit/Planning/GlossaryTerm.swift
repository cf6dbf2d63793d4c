public import KeychainRules

/// A word that reports of a move use and that has a page of its own: why an item does not arrive, what an arriving item
/// does, what happens to the target's own items, and why an archive is refused.
///
/// Source of the rules: Apple `SecItemDb.c` (`SecServerImportItem`, `SecServerImportKeychainInPlist`), `SecDbItem.c`
/// (`SecDbItemInsertOrReplace`).
public enum GlossaryTerm: Sendable, Hashable, CaseIterable {
  /// Why an item does not arrive.
  case reason(Reason)
  /// What an arriving item does on the target.
  case change(MigrationPlan.Change)
  /// What is known against the use of an arriving item.
  case warning(ArrivalWarning)
  /// An arriving item starts to sync.
  case inferredSynchronizable
  /// An item of the target is gone after a restore that replaces.
  case removed
  /// An item of the target is there after a restore that replaces.
  case preserved
  /// The archive's keychain was sealed for another keybag.
  case keybagMismatch
  /// A file of the archive is not what was sealed.
  case sealBroken

  /// Every word there is, in the order in which `explain` lists them.
  public static let allCases: [GlossaryTerm] =
    Reason.allCases.map(GlossaryTerm.reason) + MigrationPlan.Change.allCases.map(GlossaryTerm.change)
    + ArrivalWarning.allCases.map(GlossaryTerm.warning)
    + [.inferredSynchronizable, .removed, .preserved, .keybagMismatch, .sealBroken]

  /// The word itself, as reports, JSON and `explain` use it.
  package var id: String {
    switch self {
    case .reason(let reason): reason.rawValue
    case .change(let change): change.rawValue
    case .warning(let warning): warning.rawValue
    case .inferredSynchronizable: "inferred-synchronizable"
    case .removed: "removed"
    case .preserved: "preserved"
    case .keybagMismatch: "keybag-mismatch"
    case .sealBroken: "seal-broken"
    }
  }
}
