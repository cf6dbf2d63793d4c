import Backups
import Basics
import KeychainFormats
import KeychainRules

/// What a plan makes of the items of a backup before it looks at any target.
protocol ItemSettling {
  /// An item as a restore would store it.
  ///
  /// - Throws: What keeps it from being stored.
  func incoming(_ archived: ArchivedItem, _ item: KeychainItem) throws(KeychainRuleError) -> IncomingItem.Keyed

  /// What reports tell of it.
  func known(_ archived: ArchivedItem, _ item: KeychainItem) -> KnownItem
}

/// Settles each item when it is asked for, for one plan.
struct SettlingOnce: ItemSettling {
  func incoming(_ archived: ArchivedItem, _ item: KeychainItem) throws(KeychainRuleError) -> IncomingItem.Keyed {
    try IncomingItem.Keyed(item, persistentReference: archived.persistentReference)
  }

  func known(_ archived: ArchivedItem, _ item: KeychainItem) -> KnownItem { .sharing(item, of: archived) }
}

/// The items of a backup that a plan is made of, for whoever meets one again that it did not hold.
struct ComingItems<Settling: ItemSettling> {
  /// In the order in which they come.
  let items: [ArchivedItem]
  let settling: Settling

  /// The item at a place among them, as a restore would store it.
  ///
  /// - Throws: What keeps it from being stored, and `.notAvailable` where it does not open any more.
  func incoming(at place: Int) throws(KeychainRuleError) -> IncomingItem {
    let (archived, item) = try items[place].openedAgain()
    return try settling.incoming(archived, item).incoming
  }
}

extension ArchivedItem {
  /// An item that opened before.
  ///
  /// - Throws: `.notAvailable` where it does not open any more.
  func openedAgain() throws(KeychainRuleError) -> (ArchivedItem, KeychainItem) {
    let archived = held
    guard let item = archived.item else {
      throw KeychainRuleError(.notAvailable, "item \(index) was readable before, but cannot be read again")
    }
    return (archived, item)
  }
}

/// Settles each item once for all plans that are made of a backup, in which every item has a position of its own. One whose
/// position is none of the backup's is settled for each plan.
final class SettledItems: ItemSettling, Sendable {
  /// By reference: the table has a place for each item from the start.
  private final class Settled: Sendable {
    let incoming: Result<IncomingItem.Keyed, KeychainRuleError>
    let known: KnownItem

    init(_ incoming: Result<IncomingItem.Keyed, KeychainRuleError>, _ known: KnownItem) {
      self.incoming = incoming
      self.known = known
    }
  }

  private let all: Locked<[Settled?]>

  /// - Parameter count: How many items the backup has.
  init(count: Int) { all = Locked(Array(repeating: nil, count: count)) }

  func incoming(_ archived: ArchivedItem, _ item: KeychainItem) throws(KeychainRuleError) -> IncomingItem.Keyed {
    try settled(archived, item).incoming.get()
  }

  func known(_ archived: ArchivedItem, _ item: KeychainItem) -> KnownItem { settled(archived, item).known }

  private func settled(_ archived: ArchivedItem, _ item: KeychainItem) -> Settled {
    let index = archived.index
    if let settled = all.withLock({ $0.indices.contains(index) ? $0[index] : nil }) { return settled }
    let incoming: Result<IncomingItem.Keyed, KeychainRuleError>
    do throws(KeychainRuleError) {
      incoming = .success(try SettlingOnce().incoming(archived, item))
    } catch {
      incoming = .failure(error)
    }
    let settled = Settled(incoming, .sharing(item, of: archived))
    all.withLock { if $0.indices.contains(index) { $0[index] = settled } }
    return settled
  }
}
