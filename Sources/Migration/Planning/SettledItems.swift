import ArchivedKeychain
import KeychainFormats
import KeychainRules
import ParallelWork

/// What a plan makes of the items of a backup before it looks at any target.
protocol ItemSettling {
  /// An item as a restore would store it.
  ///
  /// - Throws: What keeps it from being stored.
  func incoming(_ archived: ArchivedItem, _ item: KeychainItem) throws(KeychainRuleError) -> IncomingItem

  /// What reports tell of it.
  func known(_ archived: ArchivedItem, _ item: KeychainItem) -> KnownItem
}

/// Settles each item when it is asked for, for one plan.
struct SettlingOnce: ItemSettling {
  func incoming(_ archived: ArchivedItem, _ item: KeychainItem) throws(KeychainRuleError) -> IncomingItem {
    try IncomingItem(item, persistentReference: archived.persistentReference)
  }

  func known(_ archived: ArchivedItem, _ item: KeychainItem) -> KnownItem { .sharing(item) }
}

/// Settles each item once for all plans that are made of a backup, in which every item has a position of its own.
final class SettledItems: ItemSettling, Sendable {
  /// By reference: a table of them has room for twice as many.
  private final class Settled: Sendable {
    let incoming: Result<IncomingItem, KeychainRuleError>
    let known: KnownItem

    init(_ incoming: Result<IncomingItem, KeychainRuleError>, _ known: KnownItem) {
      self.incoming = incoming
      self.known = known
    }
  }

  private let all = Locked<[Int: Settled]>([:])

  func incoming(_ archived: ArchivedItem, _ item: KeychainItem) throws(KeychainRuleError) -> IncomingItem {
    try settled(archived, item).incoming.get()
  }

  func known(_ archived: ArchivedItem, _ item: KeychainItem) -> KnownItem { settled(archived, item).known }

  private func settled(_ archived: ArchivedItem, _ item: KeychainItem) -> Settled {
    if let settled = all.withLock({ $0[archived.index] }) { return settled }
    let incoming: Result<IncomingItem, KeychainRuleError>
    do throws(KeychainRuleError) {
      incoming = .success(try SettlingOnce().incoming(archived, item))
    } catch {
      incoming = .failure(error)
    }
    let settled = Settled(incoming, .sharing(item))
    all.withLock { $0[archived.index] = settled }
    return settled
  }
}
