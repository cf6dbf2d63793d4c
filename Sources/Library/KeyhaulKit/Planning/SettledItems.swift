import Backups
import Basics
import KeychainFormats
import KeychainRules

/// Prepares each item once for all plans of one backup: as a restore would store it, and as reports show it.
final class SettledItems: Sendable {
  /// By reference: the table has a place for each item from the start.
  private final class Settled: Sendable {
    let incoming: Result<IncomingItem.Keyed, KeychainRuleError>
    let known: ItemSummary

    init(_ incoming: Result<IncomingItem.Keyed, KeychainRuleError>, _ known: ItemSummary) {
      self.incoming = incoming
      self.known = known
    }
  }

  private let all: Locked<[Settled?]>
  private let isKept: Bool

  /// - Parameter count: How many items are kept for the next plan, by their position; none for a single plan.
  init(count: Int = 0) {
    all = Locked(Array(repeating: nil, count: count))
    isKept = count > 0
  }

  /// An item as a restore would store it.
  ///
  /// - Throws: What keeps it from being stored.
  func incoming(_ archived: BackupItem, _ item: KeychainItem) throws(KeychainRuleError) -> IncomingItem.Keyed {
    isKept ? try settled(archived, item).incoming.get() : try Self.prepared(archived, item)
  }

  private static func prepared(
    _ archived: BackupItem, _ item: KeychainItem
  ) throws(KeychainRuleError) -> IncomingItem.Keyed {
    try IncomingItem.Keyed(item, persistentReference: archived.persistentReference)
  }

  /// What reports show of it.
  func known(_ archived: BackupItem, _ item: KeychainItem) -> ItemSummary {
    isKept ? settled(archived, item).known : .sharing(item)
  }

  private func settled(_ archived: BackupItem, _ item: KeychainItem) -> Settled {
    let index = archived.index
    if let settled = all.withLock({ $0.indices.contains(index) ? $0[index] : nil }) { return settled }
    let incoming: Result<IncomingItem.Keyed, KeychainRuleError>
    do throws(KeychainRuleError) {
      incoming = .success(try Self.prepared(archived, item))
    } catch {
      incoming = .failure(error)
    }
    let settled = Settled(incoming, .sharing(item))
    all.withLock { if $0.indices.contains(index) { $0[index] = settled } }
    return settled
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
