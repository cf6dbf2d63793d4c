package import Backups
import Basics
package import KeychainFormats
package import KeychainRules

/// An expected outcome for all items that a matcher selects. It applies to all four restores (with or without a
/// password, to the same device or to another device), or only to some of them.
package struct PlanExpectation: Sendable, Hashable {
  /// The outcomes that can be expected. `.absent` means that the matcher must select no item.
  package static let outcomes: [ItemFate] = [.migrates, .staysBehind, .absent]

  /// Selects the items. All of them must have the expected outcome.
  package var matcher: ItemMatcher
  /// The expected outcome, from `outcomes`.
  package let outcome: ItemFate
  /// The reason why the item must stay behind; `nil` means any.
  package var reason: Reason?
  /// Whether the expectation applies only to backups with a password, or only to backups without one; `nil` means both.
  package var hasPassword: Bool?
  /// Whether the expectation applies only to the source device, or only to other devices; `nil` means both.
  package var onSameDevice: Bool?

  /// Creates an expectation.
  package init(
    _ matcher: ItemMatcher, _ outcome: ItemFate, reason: Reason? = nil, hasPassword: Bool? = nil,
    onSameDevice: Bool? = nil
  ) {
    self.matcher = matcher
    self.outcome = outcome
    self.reason = reason
    self.hasPassword = hasPassword
    self.onSameDevice = onSameDevice
  }

  /// An unmet expectation: a matching item has a different outcome, or no item matches.
  ///
  /// Whether an encrypted item matches is unknown, because its names are unknown. If such an item may match and has
  /// a different outcome, two kinds of expectations are also unmet: expectations of `.absent`, and expectations whose
  /// matcher has a star.
  package struct Unmet: Sendable, Hashable {
    /// The expectation.
    package let expectation: PlanExpectation
    /// The matching item with a different outcome; `nil` if an item is missing, or if the result is about encrypted items.
    package let item: ActualItem?
    /// The number of encrypted items that may match, because their names are unknown.
    package let encryptedCount: Int
    /// Whether any item certainly matches.
    package let hasCertainMatch: Bool
  }

  /// Returns whether the expectation applies to a restore. An expectation about an unknown property does not apply.
  package func applies(to scenario: ActualScenario) -> Bool {
    if let hasPassword, hasPassword != scenario.hasPassword { return false }
    if let onSameDevice, onSameDevice != scenario.onSameDevice { return false }
    return true
  }

  /// Returns whether an item with this outcome meets the expectation.
  func isMet(by restoreOutcome: RestoreOutcome) -> Bool {
    switch (outcome, restoreOutcome) {
    case (.migrates, .arrives): true
    case (.staysBehind, .staysBehind(let actual)): reason == nil || reason == actual
    case (.migrates, _), (.staysBehind, _), (.unreadable, _), (.absent, _), (.ambiguous, _): false
    }
  }
}

/// The known properties of the restore that expectations are compared with.
package struct ActualScenario: Sendable, Hashable {
  /// Whether the backup has a password.
  package let hasPassword: Bool
  /// Whether the target is the source device; `nil` if the keys do not prove either.
  package let onSameDevice: Bool?

  /// Creates the properties of a restore.
  package init(hasPassword: Bool, onSameDevice: Bool?) {
    self.hasPassword = hasPassword
    self.onSameDevice = onSameDevice
  }
}

/// An item that expectations are compared with: its names, and its outcome in a restore.
package struct ActualItem: Sendable, Hashable {
  /// The index in the backup or in the device's plan.
  package let index: Int
  /// The item's names, which are unknown if it cannot be decrypted.
  package let identity: ItemDescriptor
  /// The protection class; `nil` if it is unknown.
  package let protection: ProtectionClass?
  /// The item's outcome in the restore.
  package let restoreOutcome: RestoreOutcome
  /// The item's change to the target; `nil` if the item does not arrive, or there is no target.
  package let change: MigrationPlan.Change?
  /// An additional fact; never a value of the item.
  package let detail: String?

  /// Creates an item from a plan's decision.
  package init(_ decision: MigrationPlan.Decision) {
    index = decision.index
    identity = decision.identity
    protection = decision.protection
    restoreOutcome = RestoreOutcome(decision.outcome)
    change = decision.outcome.change
    detail = decision.detail
  }

  /// Creates an item from its outcome in one of the four restores.
  package init(_ item: MigrationComparison.Item, in scenario: RestoreScenario) {
    index = item.index
    identity = item.identity
    protection = item.protection
    restoreOutcome = item[scenario]
    change = nil
    detail = nil
  }
}
