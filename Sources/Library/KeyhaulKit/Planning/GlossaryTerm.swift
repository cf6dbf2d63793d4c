public import KeychainRules

/// A term in reports of a move that `explain` describes: reasons, changes, warnings, outcomes for the target's own items,
/// and two findings about the backup.
///
/// Source of the rules: Apple `SecItemDb.c` (`SecServerImportItem`, `SecServerImportKeychainInPlist`), `SecDbItem.c`
/// (`SecDbItemInsertOrReplace`).
public enum GlossaryTerm: Sendable, Hashable, CaseIterable {
  /// A reason why an item does not arrive.
  case reason(Reason)
  /// The effect of an arriving item on the target.
  case change(MigrationPlan.Change)
  /// A reason why an arriving item may be unusable.
  case warning(ArrivalWarning)
  /// An arriving item starts to sync.
  case inferredSynchronizable
  /// A restore that replaces removes an item of the target.
  case removed
  /// A restore that replaces keeps an item of the target.
  case preserved
  /// The backup's keychain was encrypted for a different keybag.
  case keybagMismatch
  /// A file of the backup does not match the seal.
  case sealBroken

  /// All terms, in the order in which `explain` lists them.
  public static let allCases: [GlossaryTerm] =
    Reason.allCases.map(GlossaryTerm.reason) + MigrationPlan.Change.allCases.map(GlossaryTerm.change)
    + ArrivalWarning.allCases.map(GlossaryTerm.warning)
    + [.inferredSynchronizable, .removed, .preserved, .keybagMismatch, .sealBroken]

  /// The identifier, as in reports, JSON and `explain`.
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
