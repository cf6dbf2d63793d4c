import Backups
import Basics
import KeychainFormats
import KeychainRules

/// A cache of prepared items for all plans of one backup: each item as a restore would store it, and its summary for
/// reports.
final class ImportCache: Sendable {
  /// A class, so that an element of the array takes only a pointer until its item is prepared.
  private final class CachedImport: Sendable {
    let incoming: Result<IncomingItem.Keyed, KeychainRuleError>
    let summary: ItemSummary

    init(_ incoming: Result<IncomingItem.Keyed, KeychainRuleError>, _ summary: ItemSummary) {
      self.incoming = incoming
      self.summary = summary
    }
  }

  private let imports: Locked<[CachedImport?]>
  private let isEnabled: Bool

  /// - Parameter count: The number of items to cache, by index; 0 for a single plan.
  init(count: Int = 0) {
    imports = Locked(Array(repeating: nil, count: count))
    isEnabled = count > 0
  }

  /// Returns an item as a restore would store it.
  ///
  /// - Throws: An error if the item cannot be stored.
  func incoming(_ backupItem: BackupItem, _ item: KeychainItem) throws(KeychainRuleError) -> IncomingItem.Keyed {
    isEnabled ? try cached(backupItem, item).incoming.get() : try Self.prepared(backupItem, item)
  }

  private static func prepared(
    _ backupItem: BackupItem, _ item: KeychainItem
  ) throws(KeychainRuleError) -> IncomingItem.Keyed {
    try IncomingItem.Keyed(item, persistentReference: backupItem.persistentReference)
  }

  /// Returns the summary of an item for reports.
  func summary(_ backupItem: BackupItem, _ item: KeychainItem) -> ItemSummary {
    isEnabled ? cached(backupItem, item).summary : .sharing(item)
  }

  private func cached(_ backupItem: BackupItem, _ item: KeychainItem) -> CachedImport {
    let index = backupItem.index
    if let cached = imports.withLock({ $0.indices.contains(index) ? $0[index] : nil }) { return cached }
    let incoming: Result<IncomingItem.Keyed, KeychainRuleError>
    do throws(KeychainRuleError) {
      incoming = .success(try Self.prepared(backupItem, item))
    } catch {
      incoming = .failure(error)
    }
    let cached = CachedImport(incoming, .sharing(item))
    imports.withLock { if $0.indices.contains(index) { $0[index] = cached } }
    return cached
  }
}

extension BackupItem {
  /// Returns the decrypted content of an item that a plan imports.
  ///
  /// - Throws: `.notAvailable` if the item is encrypted.
  func requireItem() throws(KeychainRuleError) -> KeychainItem {
    guard let item else { throw KeychainRuleError(.notAvailable, "item \(index) is encrypted") }
    return item
  }
}
