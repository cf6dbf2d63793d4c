/// The treatment of the target's own items by a restore: whether it removes them before the import.
///
/// `ImportConflict` then decides between each imported item and a row with the same key.
public enum ExistingItemPolicy: String, Sendable, CaseIterable, Codable {
  /// Removes everything that is not synchronized before the import, as iOS does.
  case replace
  /// Keeps everything. If two items have the same key, the newer one wins.
  case merge
}
