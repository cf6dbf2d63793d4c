import KeyhaulKit

/// The items of a Simulator's keychain that are whole, to find those that need not be put in once more.
struct StandingItems {
  /// By the digest of all that counts of an item.
  private var items: [[UInt8]: [Standing]] = [:]

  private struct Standing {
    let item: KeychainItem
    let appClip: Int64
  }

  /// - Parameter rows: As they were read. One that is damaged, or whose columns say something else than its attributes,
  ///   is rewritten like one that differs.
  init(_ rows: [KeychainDatabase.OpenedRow]) {
    for row in rows where row.hasFittingDigest == true && row.differingColumns.isEmpty {
      guard var item = row.opened.item, let digest = row.row.digest else { continue }
      if let control = row.opened.accessControl {
        // What is written has a class and constraints, and nothing else.
        guard control.members.entries.count == (control.constraints == nil ? 1 : 2) else { continue }
        if let constraints = control.constraints { item[.accessControl] = .dictionary(constraints) }
      }
      items[digest, default: []].append(
        Standing(item: Self.plain(item), appClip: row.row.columns[.appClip]?.integerValue ?? 0))
    }
  }

  /// Whether the item is there as it would be written: with each of its attributes and its secret, but for the
  /// persistent reference, which is the row's.
  func hold(_ item: KeychainItem) -> Bool {
    guard let digest = try? item.digest(), let standing = items[digest] else { return false }
    let mark = item[.appClip]?.integerValue ?? 0
    let plain = Self.plain(item)
    return standing.contains { $0.appClip == mark && Self.areEqual($0.item, plain) }
  }

  private static func areEqual(_ item: KeychainItem, _ other: KeychainItem) -> Bool {
    item.kind == other.kind && item.attributes == other.attributes && item.secrets.count == other.secrets.count
      && item.secrets.allSatisfy { other.secrets[$0.key]?.constantTimeEquals($0.value) == true }
  }

  private static func plain(_ item: KeychainItem) -> KeychainItem {
    var item = item
    item[.persistentReference] = nil
    item[.appClip] = nil
    return item
  }
}
