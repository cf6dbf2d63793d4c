package import Backups
package import KeychainFormats
package import KeychainRules
package import VirtualDevice

/// All that is known about one item: when it can be read, its outcome in this backup, its effect on one target, and its
/// outcome in the four restores: with or without a backup password, to the same or another device.
package struct ItemExplanation: Sendable {
  /// The location of an explained item.
  package enum Location: Sendable, Hashable {
    /// In the backup, at this index.
    case archive(index: Int)
    /// On the device, or in a dump or database of it, at this index in a simulated backup.
    case device(index: Int)
    /// On the device, as the tombstone of a deleted item. No backup contains it, and no plan numbers it.
    case deleted
    /// On the source device but not in the backup. `rule` is the rule that excludes the item, or `nil` if the item was
    /// added after the backup.
    case missing(from: String, rule: Reason?)
    /// Only on the target, which is not the source device.
    case targetOnly(isRemoved: Bool)
  }

  /// The location of the item.
  package let location: Location
  /// The item's names.
  package let identity: ItemDescriptor
  /// The protection class; `nil` if it is unknown.
  package let protection: ProtectionClass?
  /// The outcome in each of the four restores; empty if they are unknown.
  package let restoreOutcomes: RestoreOutcomes
  /// Whether the item can be decrypted in this backup, and the reason if it cannot.
  package let decision: MigrationPlan.Decision?
  /// The decision about the item on the target.
  package let decisionOnTarget: MigrationPlan.Decision?
  /// Whether the item synchronizes; `nil` if it is encrypted.
  package let isSynchronizable: Bool?
  /// Whether the item's value has the form of a Secure Enclave key; `nil` if it has no value or is not
  /// decrypted.
  package let containsSecureEnclaveKey: Bool?

  /// Creates an explanation.
  ///
  /// - Parameters:
  ///   - location: The location of the item.
  ///   - identity: The item's names.
  ///   - protection: The protection class.
  ///   - restoreOutcomes: The outcome in each of the four restores.
  ///   - decision: The decision about the item in this backup.
  ///   - decisionOnTarget: The decision about the item on the target.
  ///   - item: The decrypted item, with or without its value; `nil` if it cannot be decrypted.
  ///   - containsSecureEnclaveKey: Whether the value has the form of a Secure Enclave key, if this is known without the
  ///     value.
  package init(
    location: Location, identity: ItemDescriptor, protection: ProtectionClass?, restoreOutcomes: RestoreOutcomes,
    decision: MigrationPlan.Decision?, onTarget decisionOnTarget: MigrationPlan.Decision?, item: KeychainItem? = nil,
    containsSecureEnclaveKey: Bool? = nil
  ) {
    self.location = location
    self.identity = identity
    self.protection = protection
    self.restoreOutcomes = restoreOutcomes
    self.decision = decision
    self.decisionOnTarget = decisionOnTarget
    isSynchronizable = item?.isSynchronizable ?? decision?.isSynchronizable
    self.containsSecureEnclaveKey =
      containsSecureEnclaveKey ?? (item?.secret == nil ? nil : item?.containsSecureEnclaveKey)
      ?? decision?.containsSecureEnclaveKey
  }

  /// The assessments of the transfer methods to another device; `nil` if no outcome is known, as for an item only on the
  /// target.
  package var transfers: TransferAssessments? {
    guard !restoreOutcomes.isEmpty else { return nil }
    return TransferAssessments(
      restoreOutcomes: restoreOutcomes, protection: protection, isSynchronizable: isSynchronizable)
  }

  /// The reason why the item does not arrive; `nil` if it arrives.
  ///
  /// For an item that is missing from the backup, this is the rule that excludes it; `nil` if it was added after the
  /// backup. For any other item, the target's plan decides if there is a target. Otherwise, the reason is from this
  /// backup, or else from a restore of a backup with a password to another device.
  package var reason: Reason? {
    if case .missing(_, let rule) = location { return rule }
    if let decisionOnTarget { return decisionOnTarget.outcome.reason }
    return decision?.outcome.reason
      ?? restoreOutcomes[RestoreScenario(hasPassword: true, onSameDevice: false)]?.reason
  }
}

extension ProtectionClass {
  /// Returns whether an item of this class can be read in a state of its device.
  ///
  /// Source: Apple Platform Security, "Keychain data protection".
  package func isReadable(in state: DeviceState) -> Bool {
    switch (keyClass, state) {
    case (_, .unlocked): true
    case (.afterFirstUnlock, .locked), (.afterFirstUnlockThisDeviceOnly, .locked): true
    case (.always, _), (.alwaysThisDeviceOnly, _): true
    case (_, .locked), (_, .beforeFirstUnlock): false
    }
  }

  /// A phrase that states when an item of this class can be read.
  package var readability: String {
    switch self {
    case .whenUnlocked, .whenUnlockedThisDeviceOnly: "while the device is unlocked"
    case .afterFirstUnlock, .afterFirstUnlockThisDeviceOnly:
      "after the first unlock following a restart, even while the device is locked"
    case .always, .alwaysThisDeviceOnly: "always, even before the first unlock (deprecated since iOS 12)"
    case .whenPasscodeSetThisDeviceOnly:
      "while the device is unlocked and a passcode is set; removing the passcode destroys the item"
    }
  }
}
