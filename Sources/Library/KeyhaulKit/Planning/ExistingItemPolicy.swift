/// What a restore does with the items that are on the target already.
public enum ExistingItemPolicy: String, Sendable, CaseIterable, Codable {
  /// What iOS does: everything that is not synchronized is removed first.
  case replace
  /// Everything stays; of two items with the same key the newer one wins.
  case merge
}
