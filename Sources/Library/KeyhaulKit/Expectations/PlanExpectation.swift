package import Backups
import Basics
package import KeychainFormats
package import KeychainRules

/// What someone expects for the items that a matcher means, in every restore or in some of the four.
package struct PlanExpectation: Sendable, Hashable {
  /// The fates that can be expected.
  package static let fates: [ItemFate] = [.migrates, .staysBehind, .absent]

  /// Which items are meant; all of them have to meet the expectation.
  package var matcher: ItemMatcher
  /// One of `fates`.
  package let fate: ItemFate
  /// Why it stays behind, where that matters too.
  package var reason: Reason?
  /// Holds for a backup with a password alone, or for one without; `nil` for both.
  package var hasPassword: Bool?
  /// Holds for the device that made the backup alone, or for another; `nil` for both.
  package var onSameDevice: Bool?

  /// Creates an expectation.
  package init(
    _ matcher: ItemMatcher, _ fate: ItemFate, reason: Reason? = nil, hasPassword: Bool? = nil,
    onSameDevice: Bool? = nil
  ) {
    self.matcher = matcher
    self.fate = fate
    self.reason = reason
    self.hasPassword = hasPassword
    self.onSameDevice = onSameDevice
  }

  /// An unmet expectation: an item that it means has another outcome, or there is no such item.
  ///
  /// An encrypted item has no names. An expectation about all items that a star matches, or about the absence of items,
  /// may therefore stay undecided. This is the case if it may mean an encrypted item with another outcome.
  package struct Miss: Sendable, Hashable {
    /// The expectation that is not met.
    package let expectation: PlanExpectation
    /// What becomes of an item that is meant; `nil` if none is known to be.
    package let item: ExpectedItem?
    /// How many sealed items may be meant, whose names are not known.
    package let sealedCount: Int
    /// Whether any item is known to be meant.
    package let isAnyItemMeant: Bool
  }

  /// Returns whether it holds for a restore; what it says of a fact that is not known of the restore, it does not hold.
  package func holds(for scenario: ExpectedScenario) -> Bool {
    if let hasPassword, hasPassword != scenario.hasPassword { return false }
    if let onSameDevice, onSameDevice != scenario.onSameDevice { return false }
    return true
  }

  /// Whether an item with this outcome meets the expectation.
  func isMet(by restoreOutcome: RestoreOutcome) -> Bool {
    switch (fate, restoreOutcome) {
    case (.migrates, .arrives): true
    case (.staysBehind, .staysBehind(let why)): reason == nil || reason == why
    case (.migrates, _), (.staysBehind, _), (.unreadable, _), (.absent, _), (.ambiguous, _): false
    }
  }
}

/// What is known of a restore that expectations are held against.
package struct ExpectedScenario: Sendable, Hashable {
  /// Whether the backup has a password.
  package let hasPassword: Bool
  /// Whether the target is the device that made the backup; `nil` if the keys prove neither.
  package let onSameDevice: Bool?

  /// Creates what is known of a restore.
  package init(hasPassword: Bool, onSameDevice: Bool?) {
    self.hasPassword = hasPassword
    self.onSameDevice = onSameDevice
  }
}

/// An item as an expectation meets it: its names, and what becomes of it.
package struct ExpectedItem: Sendable, Hashable {
  /// Its position in the archive or in the device's plan.
  package let index: Int
  /// The names that it is known by; sealed where it does not open.
  package let identity: ItemDescriptor
  /// The class that protects it; `nil` if the blob doesn't say.
  package let protection: ProtectionClass?
  /// What becomes of it.
  package let restoreOutcome: RestoreOutcome
  /// The item's change to the target; `nil` if the item does not arrive, or there is no target.
  package let change: MigrationPlan.Change?
  /// A fact worth showing with it; never a value of the item.
  package let detail: String?

  /// The item as a plan decides it.
  package init(_ decision: MigrationPlan.Decision) {
    index = decision.index
    identity = decision.identity
    protection = decision.protection
    restoreOutcome = RestoreOutcome(decision.outcome)
    change = decision.outcome.change
    detail = decision.detail
  }

  /// The item as it fares in one of the four restores.
  package init(_ item: MigrationComparison.Item, in scenario: RestoreScenario) {
    index = item.index
    identity = item.identity
    protection = item.protection
    restoreOutcome = item[scenario]
    change = nil
    detail = nil
  }
}
