package import KeychainFormats

/// Whether each transfer method brings an item to another device, independently of the items that are there already.
///
/// Only published rules are used.
///
/// Sources:
///
/// - For a backup, the rules in `KeychainRules`.
/// - For a direct transfer, Apple DTS, Developer Forums thread 788360. An item that does not synchronize can move by Quick
///   Start and by an encrypted backup, and the "this device only" classes prevent both.
/// - For iCloud Keychain, Apple, `kSecAttrSynchronizable`, and DTS, thread 93373. Synchronized items travel apart from
///   backups, and the user can turn synchronization off.
package struct TransferAssessments: Sendable, Hashable {
  /// The assessment for a backup with a password.
  package let encryptedBackup: TransferAssessment
  /// The assessment for a backup without a password.
  package let unencryptedBackup: TransferAssessment
  /// The assessment for a transfer from device to device.
  package let directTransfer: TransferAssessment
  /// The assessment for iCloud Keychain.
  package let iCloudKeychain: TransferAssessment

  /// Assesses all methods for one item.
  ///
  /// - Parameters:
  ///   - withPassword: The reason why a backup with a password does not bring the item, or `nil` if it does.
  ///   - withoutPassword: The reason why a backup without a password does not bring the item, or `nil` if it does.
  ///   - protection: The protection class, or `nil` if it is unknown.
  ///   - isSynchronizable: Whether the item is synchronized, or `nil` if that attribute cannot be decrypted.
  package init(
    withPassword: Reason?, withoutPassword: Reason?, protection: ProtectionClass?, isSynchronizable: Bool?
  ) {
    encryptedBackup = withPassword.map { .no(.reason($0)) } ?? .yes(.restored)
    unencryptedBackup = withoutPassword.map { .no(.reason($0)) } ?? .yes(.restored)
    let bindingReason = withPassword == .deleted ? .deleted : protection.flatMap(Self.bindingReason)
    // Applies to a direct transfer and to iCloud Keychain; `nil` if each has its own rule.
    let sharedAssessment = bindingReason.map { .no(.reason($0)) } ?? Self.malformedAssessment(withPassword)
    directTransfer = sharedAssessment ?? Self.assessDirectTransfer(withPassword, protection, isSynchronizable)
    iCloudKeychain = sharedAssessment ?? Self.assessICloudKeychain(withPassword, isSynchronizable)
  }

  /// The assessment for a method.
  package subscript(method: TransferMethod) -> TransferAssessment {
    switch method {
    case .encryptedBackup: encryptedBackup
    case .unencryptedBackup: unencryptedBackup
    case .directTransfer: directTransfer
    case .iCloudKeychain: iCloudKeychain
    }
  }

  /// Returns the reason why items of a class never leave their device, or `nil` if they may.
  private static func bindingReason(_ protection: ProtectionClass) -> Reason? {
    if protection == .whenPasscodeSetThisDeviceOnly { return .passcodeOnly }
    return protection.isThisDeviceOnly ? .deviceBound : nil
  }

  /// Returns "not known" for a malformed item, because the item on the source device may have different attributes.
  /// Returns `nil` if the item is not malformed.
  private static func malformedAssessment(_ reason: Reason?) -> TransferAssessment? {
    reason == .malformed ? .notKnown(.reason(.malformed)) : nil
  }

  /// Assesses a direct transfer. The published rule depends on the protection class, and covers only items that do not
  /// synchronize.
  private static func assessDirectTransfer(
    _ reason: Reason?, _ protection: ProtectionClass?, _ isSynchronizable: Bool?
  ) -> TransferAssessment {
    if reason?.cause == .exclusion { return .notKnown(.noSource) }
    guard protection != nil, let isSynchronizable else { return .notKnown(.sealed) }
    return isSynchronizable ? .notKnown(.noSource) : .yes(.movableClass)
  }

  /// Assesses iCloud Keychain. A sharing group distributes its copies by a different method.
  private static func assessICloudKeychain(_ reason: Reason?, _ isSynchronizable: Bool?) -> TransferAssessment {
    if reason == .sharedGroup { return .notKnown(.noSource) }
    guard let isSynchronizable else { return .notKnown(.sealed) }
    return isSynchronizable ? .yes(.synchronized) : .no(.notSynchronized)
  }
}

/// A method of bringing an item to another device.
///
/// The raw value is the word in JSON.
public enum TransferMethod: String, Sendable, CaseIterable, Hashable, Codable {
  /// Restoring a backup with a password.
  case encryptedBackup = "encrypted-backup"
  /// Restoring a backup without a password.
  case unencryptedBackup = "unencrypted-backup"
  /// Transferring directly from device to device (Quick Start), without a backup.
  case directTransfer = "direct-transfer"
  /// iCloud Keychain, if it is turned on.
  case iCloudKeychain = "icloud-keychain"
}

/// A reason for the assessment of a transfer method.
public enum TransferRationale: Sendable, Hashable {
  /// The backup contains the item, and its key is available on the target.
  case restored
  /// The item's class is not bound to the device.
  case movableClass
  /// The item is synchronized.
  case synchronized
  /// The item is not synchronized.
  case notSynchronized
  /// A rule excludes the item, or it is damaged.
  case reason(Reason)
  /// The item cannot be decrypted, so the attribute that decides is unknown.
  case sealed
  /// No published source covers the case.
  case noSource

  /// The word in JSON.
  package var id: String {
    switch self {
    case .restored: "restored"
    case .movableClass: "movable-class"
    case .synchronized: "synchronized"
    case .notSynchronized: "not-synchronized"
    case .reason(let reason): reason.rawValue
    case .sealed: "sealed"
    case .noSource: "no-source"
    }
  }
}

/// Whether an item arrives by one method, and the reason.
public enum TransferAssessment: Sendable, Hashable {
  /// The item arrives.
  case yes(TransferRationale)
  /// The item does not arrive.
  case no(TransferRationale)
  /// Nothing shows whether the item arrives.
  case notKnown(TransferRationale)

  /// An assessment without its reason. The raw value is the word in JSON.
  public enum Verdict: String, Sendable, CaseIterable, Hashable {
    /// The item arrives.
    case yes
    /// The item does not arrive.
    case no
    /// Nothing shows whether the item arrives.
    case notKnown = "not-known"
  }

  /// The assessment without its reason.
  public var verdict: Verdict {
    switch self {
    case .yes: .yes
    case .no: .no
    case .notKnown: .notKnown
    }
  }

  /// The reason.
  package var rationale: TransferRationale {
    switch self {
    case .yes(let rationale), .no(let rationale), .notKnown(let rationale): rationale
    }
  }
}
