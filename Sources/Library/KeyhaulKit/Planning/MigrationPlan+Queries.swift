package import Backups
import Basics
package import KeychainFormats
public import KeychainRules

extension MigrationPlan {
  /// The outcome for the items with a name: `plan["session token"] == .migrates`.
  ///
  /// The name must equal the item's label, account, service or server. If several items match, the result is their
  /// common outcome, or `.ambiguous` if they differ; `decisions(named:)` returns the decision about each item. Encrypted
  /// items that stay behind have no names, unless the plan was made from the device or with the source device's key.
  public subscript(name: String) -> ItemFate { outcome(of: decisions(named: name)) }

  /// The outcome for the items that a matcher selects.
  package subscript(matcher: ItemMatcher) -> ItemFate { outcome(of: decisions(for: matcher)) }

  /// Returns the decisions about the items whose label, account, service or server has this name.
  public func decisions(named name: String) -> [Decision] {
    decisions.filter { decision in
      let identity = decision.identity
      return [identity.label, identity.account, identity.service, identity.server].contains(name)
    }
  }

  /// Returns the decisions about the items that a matcher selects, in the backup's order.
  package func decisions(for matcher: ItemMatcher) -> [Decision] { decisions.filter { matcher.matches($0.identity) } }

  /// Returns the reason why the item with a name does not arrive. `nil` if the item arrives, if no item has the name, or
  /// if several items have it.
  public func reason(for name: String) -> Reason? {
    let matching = decisions(named: name)
    return matching.count == 1 ? matching[0].outcome.reason : nil
  }

  private func outcome(of decisions: [Decision]) -> ItemFate {
    guard let first = decisions.first?.outcome.fate else { return .absent }
    return decisions.allSatisfy { $0.outcome.fate == first } ? first : .ambiguous
  }
}

extension MigrationPlan {
  /// The maximum number of removed items that may be the only good copies of items that cannot be read in the backup.
  /// Each kind adds the number of its removed items or of its unreadable items, whichever is smaller. Which items these
  /// are is unknown, because the names of unreadable items are encrypted.
  package var removedOnlyCopyCount: Int {
    removedOnlyCopyCount(ofKinds: decisions.filter { $0.outcome.fate == .unreadable }.map(\.identity.kind))
  }

  /// Returns the maximum number of removed items that may be only copies, for a plan with a part of a backup's items.
  ///
  /// - Parameter kinds: The kinds of all unreadable items in the backup, each as often as it occurs.
  package func removedOnlyCopyCount(ofKinds kinds: [ItemKind]) -> Int {
    let removedByKind = Dictionary(grouping: removed, by: \.kind)
    let unreadableByKind = Dictionary(grouping: kinds) { $0 }
    return removedByKind.reduce(0) { sum, group in
      let (kind, removed) = group
      return sum + min(removed.count, unreadableByKind[kind]?.count ?? 0)
    }
  }
}

extension MigrationPlan.Outcome {
  /// The outcome without its reason.
  package var fate: ItemFate {
    switch self {
    case .migrates: .migrates
    case .staysBehind: .staysBehind
    case .unreadable: .unreadable
    }
  }

  /// The reason why the item does not arrive; `nil` if it arrives.
  public var reason: Reason? {
    switch self {
    case .migrates: nil
    case .staysBehind(let reason), .unreadable(let reason): reason
    }
  }

  /// The item's effect on the target; `nil` if it does not arrive.
  public var change: MigrationPlan.Change? {
    switch self {
    case .migrates(let change): change
    case .staysBehind, .unreadable: nil
    }
  }
}

extension MigrationPlan {
  /// Returns a copy with different decisions to show. A restore of the copy writes the same items.
  func showing(_ decisions: [Decision], removed: [ItemDescriptor]? = nil) -> MigrationPlan {
    MigrationPlan(self, decisions: decisions, removed: removed ?? self.removed, isSameDevice: isSameDevice)
  }

  /// The plan without a statement about the target device, because the device key that was tried is not a real one.
  var withoutDeviceProof: MigrationPlan {
    MigrationPlan(self, decisions: decisions, removed: removed, isSameDevice: nil)
  }

  /// Returns a copy in which encrypted items have their known names.
  ///
  /// - Parameter summaries: The known names and properties, by the index of the item.
  package func naming(_ summaries: [Int: ItemSummary]) -> MigrationPlan {
    guard !summaries.isEmpty else { return self }
    return showing(
      decisions.map { decision in
        guard decision.identity.isEncrypted, let summary = summaries[decision.index] else { return decision }
        return decision.naming(summary)
      })
  }

  /// The plan with items that are named by index: `item-0007` in the backup, `target-0001` on the target. Kinds,
  /// classes, outcomes, reasons and counts stay.
  package var redacted: MigrationPlan {
    showing(
      decisions.map { decision in
        decision.naming(ItemSummary(ItemDescriptor(redacted: decision.identity, "item-", decision.index)))
      },
      removed: removed.enumerated().map { ItemDescriptor(redacted: $0.element, "target-", $0.offset + 1) })
  }
}

extension ItemDescriptor {
  /// Creates a replacement for an item's names: a prefix and a number with at least four digits.
  init(redacted identity: ItemDescriptor, _ prefix: String, _ number: Int) {
    let digits = String(number)
    self.init(identity.kind, called: prefix + String(repeating: "0", count: max(0, 4 - digits.count)) + digits)
  }
}
