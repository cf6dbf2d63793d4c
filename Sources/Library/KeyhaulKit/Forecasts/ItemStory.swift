public import Backups
import Basics
public import KeychainFormats
public import KeychainRules
public import VirtualDevice

/// Everything there is to say of one item: who may read it when, what the four restores do with it, what happened to it
/// in this archive, and what it does on one target.
public struct ItemStory: Sendable {
  /// Where the item was found.
  public enum Place: Sendable, Hashable {
    /// In the archive, at this position.
    case archive(index: Int)
    /// On the device that is asked about, or in the dump or the database of one, at this position in a plan of it: what a
    /// backup made now would do with it.
    case device(index: Int)
    /// There as well, as the mark of a deleted item: no backup takes it along, and no plan numbers it.
    case deleted
    /// On a device and not in the archive, although the device made it; the rule that left it out, or `nil` where none
    /// did: it was not there yet.
    case missing(from: String, rule: Reason?)
    /// On the target alone, which has not made the archive: its own item.
    case targetOnly(isRemoved: Bool)
  }

  /// Where the item was found.
  public let place: Place
  /// The names that it is known by.
  public let identity: ItemIdentity
  /// The class that protects it; `nil` where nothing says it.
  public let protection: ProtectionClass?
  /// One for each of the four restores; empty where nothing is known of them.
  public let prospects: RestoreProspects
  /// What becomes of it in this archive or backup: whether it opens, and if not, why.
  public let decision: MigrationPlan.Decision?
  /// What it does on the target that was asked about.
  public let onTarget: MigrationPlan.Decision?
  /// Whether it is marked to synchronize; `nil` where that is sealed.
  public let isSynchronizable: Bool?
  /// Whether its value has the form of a key of the Secure Enclave; `nil` where there is no value, or it was not opened.
  public let holdsEnclaveKey: Bool?

  /// Creates a story of one item.
  ///
  /// - Parameters:
  ///   - place: Where the item was found.
  ///   - identity: The names that it is known by.
  ///   - protection: The class that protects it.
  ///   - prospects: What becomes of it in each of the four restores.
  ///   - decision: What becomes of it in this archive or backup.
  ///   - onTarget: What it does on the target.
  ///   - item: The item in clear, as far as it opens, with or without its value.
  ///   - holdsEnclaveKey: Whether its value has the form of a key of the Secure Enclave, where that is known apart.
  public init(
    place: Place, identity: ItemIdentity, protection: ProtectionClass?, prospects: RestoreProspects,
    decision: MigrationPlan.Decision?, onTarget: MigrationPlan.Decision?, item: KeychainItem? = nil,
    holdsEnclaveKey: Bool? = nil
  ) {
    self.place = place
    self.identity = identity
    self.protection = protection
    self.prospects = prospects
    self.decision = decision
    self.onTarget = onTarget
    isSynchronizable = item?.isSynchronizable ?? decision?.isSynchronizable
    self.holdsEnclaveKey =
      holdsEnclaveKey ?? (item?.secret == nil ? nil : item?.holdsEnclaveKey) ?? decision?.holdsEnclaveKey
  }

  /// On which ways it comes to another device; `nil` of a target's own item, which has no way to go.
  public var ways: TransferWays? {
    guard !prospects.isEmpty else { return nil }
    return TransferWays(prospects: prospects, protection: protection, isSynchronizable: isSynchronizable)
  }

  /// The reason that matters most: why it does not arrive on the target, in this archive, or anywhere.
  public var reason: Reason? {
    if case .missing(_, let rule) = place { return rule }
    if let onTarget { return onTarget.outcome.reason }
    return decision?.outcome.reason
      ?? prospects[RestoreSetting(hasPassword: true, onSameDevice: false)]?.reason
  }
}

extension ProtectionClass {
  /// Whether an item of this class can be read in a state of its device.
  ///
  /// Source: Apple Platform Security, "Keychain data protection".
  public func isReadable(in state: DeviceState) -> Bool {
    switch (keyClass, state) {
    case (_, .unlocked): true
    case (.afterFirstUnlock, .locked), (.afterFirstUnlockThisDeviceOnly, .locked): true
    case (.always, _), (.alwaysThisDeviceOnly, _): true
    case (_, .locked), (_, .beforeFirstUnlock): false
    }
  }

  /// When an item of this class can be read, in a sentence.
  public var readability: String {
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
