import KeyhaulKit

/// The intact items of a Simulator's keychain. A new item that equals an existing item need not be written.
struct ExistingItems {
  /// An item without its persistent reference, and with its App Clip flag as a separate value.
  private struct ComparableItem {
    let item: KeychainItem
    let appClip: Int64
  }

  /// The items by digest.
  private var items: [[UInt8]: [ComparableItem]] = [:]

  /// Collects the intact items.
  ///
  /// - Parameter rows: The rows of the keychain. A damaged row, or a row whose columns differ from its attributes, is not
  ///   intact and will be replaced.
  init(_ rows: [KeychainDatabase.DecryptedRow]) {
    for row in rows where row.hasMatchingDigest == true && row.differingColumns.isEmpty {
      guard var item = row.result.item, let digest = row.row.digest else { continue }
      if let control = row.result.accessControl {
        // Keyhaul writes only a class and constraints into an access control, so an item with other members in it
        // equals no new item.
        guard control.members.entries.count == (control.constraints == nil ? 1 : 2) else { continue }
        if let constraints = control.constraints { item[.accessControl] = .dictionary(constraints) }
      }
      items[digest, default: []].append(
        ComparableItem(item: Self.withoutReferenceAndFlag(item), appClip: row.row.columns[.appClip]?.integerValue ?? 0))
    }
  }

  /// Returns whether an item with the same attributes and secrets exists. The persistent reference may differ.
  func contains(_ item: KeychainItem) -> Bool {
    guard let digest = try? item.digest(), let existing = items[digest] else { return false }
    let appClip = item[.appClip]?.integerValue ?? 0
    let comparedItem = Self.withoutReferenceAndFlag(item)
    return existing.contains { $0.appClip == appClip && Self.areEqual($0.item, comparedItem) }
  }

  private static func areEqual(_ first: KeychainItem, _ second: KeychainItem) -> Bool {
    first.kind == second.kind && first.attributes == second.attributes && first.secrets.count == second.secrets.count
      && first.secrets.allSatisfy { second.secrets[$0.key]?.constantTimeEquals($0.value) == true }
  }

  /// Returns an item without its persistent reference and App Clip flag. The reference is not compared, and the flag is
  /// compared separately.
  private static func withoutReferenceAndFlag(_ item: KeychainItem) -> KeychainItem {
    var item = item
    item[.persistentReference] = nil
    item[.appClip] = nil
    return item
  }
}
