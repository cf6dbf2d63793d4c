public import Backups
import Basics
package import KeychainFormats
public import KeychainRules

extension MigrationPlan {
  /// The fate of the items with this name: `plan["session token"] == .migrates`.
  ///
  /// An item is meant where its label, account, service or server is the name, to the letter. Several may be; what they
  /// have in common is the answer, and `.ambiguous` where they have nothing. To be exact, ask with a matcher. An item
  /// that stays behind sealed has no names: plan from the device, or ask where the maker's key is available.
  public subscript(name: String) -> ItemFate { fate(of: decisions(named: name)) }

  /// The fate of the items that a matcher means.
  public subscript(matcher: ItemMatcher) -> ItemFate { fate(of: decisions(for: matcher)) }

  /// The decisions about the items whose label, account, service or server is the name.
  public func decisions(named name: String) -> [Decision] {
    decisions.filter { decision in
      let identity = decision.identity
      return [identity.label, identity.account, identity.service, identity.server].contains(name)
    }
  }

  /// The decisions about the items that a matcher means, in the archive's order.
  package func decisions(for matcher: ItemMatcher) -> [Decision] { decisions.filter { matcher.matches($0.identity) } }

  /// Why the one item with this name does not arrive; `nil` if it does, or where several or none have the name.
  public func reason(for name: String) -> Reason? {
    let found = decisions(named: name)
    return found.count == 1 ? found[0].outcome.reason : nil
  }

  private func fate(of found: [Decision]) -> ItemFate {
    guard let first = found.first?.outcome.fate else { return .absent }
    return found.allSatisfy { $0.outcome.fate == first } ? first : .ambiguous
  }
}

extension MigrationPlan {
  /// The most items among the removed ones that may be the only good copy of an item which cannot be read in the archive:
  /// of each kind no more than are removed, and no more than cannot be read. Which they are nobody can tell, for the name of
  /// what does not open is sealed too.
  package var removedOnlyCopies: Int {
    let unreadable = decisions.filter { if case .unreadable = $0.outcome { true } else { false } }
    return removedOnlyCopies(of: unreadable.map(\.identity.kind))
  }

  /// The same for a plan of some of an archive's items.
  ///
  /// - Parameter kinds: Those of all items that cannot be read in the archive, each as often as there are some.
  package func removedOnlyCopies(of kinds: [ItemKind]) -> Int {
    let lost = Dictionary(grouping: kinds) { $0 }
    return Dictionary(grouping: removed, by: \.kind).reduce(0) { $0 + min($1.value.count, lost[$1.key]?.count ?? 0) }
  }
}

extension MigrationPlan.Outcome {
  /// What the outcome is without its reason.
  public var fate: ItemFate {
    switch self {
    case .migrates: .migrates
    case .staysBehind: .staysBehind
    case .unreadable: .unreadable
    }
  }

  /// Why the item does not arrive; `nil` if it does.
  public var reason: Reason? {
    switch self {
    case .migrates: nil
    case .staysBehind(let reason), .unreadable(let reason): reason
    }
  }

  /// What the item does on the target; `nil` if it does not arrive.
  public var change: MigrationPlan.Change? {
    switch self {
    case .migrates(let change): change
    case .staysBehind, .unreadable: nil
    }
  }
}

extension MigrationPlan {
  /// The plan with other decisions to show; what a restore does is not touched by it.
  func showing(_ decisions: [Decision], removed: [ItemDescriptor]? = nil) -> MigrationPlan {
    MigrationPlan(self, decisions: decisions, removed: removed ?? self.removed, isSameDevice: isSameDevice)
  }

  /// The plan where the hardware key that was tried stands for one that nobody knows: it proves nothing of the target.
  var withoutDeviceProof: MigrationPlan {
    MigrationPlan(self, decisions: decisions, removed: removed, isSameDevice: nil)
  }

  /// Adds to sealed items what is known of them, by their positions.
  package func naming(_ known: [Int: ItemSummary]) -> MigrationPlan {
    guard !known.isEmpty else { return self }
    return showing(
      decisions.map { decision in
        guard decision.identity.isSealed, let item = known[decision.index] else { return decision }
        return decision.naming(item)
      })
  }

  /// The plan to show to others: each item is called `item-0007` by its position, each of the target's `target-0001`.
  /// Kinds, classes, outcomes, reasons and counts stay.
  package var redacted: MigrationPlan {
    showing(
      decisions.map { decision in
        decision.naming(ItemSummary(ItemDescriptor(redacted: decision.identity, "item-", decision.index)))
      },
      removed: removed.enumerated().map { ItemDescriptor(redacted: $0.element, "target-", $0.offset + 1) })
  }
}

extension ItemDescriptor {
  /// A name to show to others: a word and a number of four digits.
  init(redacted identity: ItemDescriptor, _ word: String, _ number: Int) {
    let digits = String(number)
    self.init(identity.kind, called: word + String(repeating: "0", count: max(0, 4 - digits.count)) + digits)
  }
}
