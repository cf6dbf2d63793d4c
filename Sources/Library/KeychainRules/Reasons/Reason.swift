/// A reason why an item does not arrive on the target device.
///
/// The raw value is the identifier in reports, JSON and `explain`. `Explanations` has the text and the sources for each
/// reason.
public enum Reason: String, Sendable, CaseIterable, Hashable, Codable {
  /// The item is restricted to this device, and the target is not the source device.
  case deviceBound = "device-bound"
  /// The item may move, but the backup has no password, so its keys require the source device.
  case backupNotEncrypted = "backup-not-encrypted"
  /// The item exists only while a passcode is set, and is never exported.
  case passcodeOnly = "passcode-only"
  /// The item refers to an object on a token, such as the Secure Enclave or a smart card.
  case hardwareKey = "hardware-key"
  /// The item belongs to the system, and every device creates its own.
  case systemBound = "system-bound"
  /// An access control protects the item (biometry, user presence, an application password).
  case needsAuthentication = "needs-authentication"
  /// The item is a copy of an item that a group of people shares.
  case sharedGroup = "shared-group"
  /// An App Clip created the item.
  case appClip = "app-clip"
  /// The item is the tombstone of a deleted synchronized item.
  case deleted
  /// The keybag has no usable key for the item's class.
  case noClassKey = "no-class-key"
  /// The authentication tag does not match: the item's bytes are not the bytes that were encrypted.
  case tagMismatch = "tag-mismatch"
  /// The item does not follow its format.
  case malformed
  /// The item's format has a version that no restore accepts: the version of iOS 4, or an unknown version.
  case unsupportedVersion = "unsupported-version"
}

extension Reason {
  /// A group of reasons with the same kind of cause.
  package enum Cause: Sendable {
    /// The item's protection class, or the backup's missing password.
    case protection
    /// A rule that excludes the item from every backup, regardless of its protection class.
    case exclusion
    /// The deletion of the item.
    case deletion
    /// Damage of the item or of its key.
    case damage
  }

  /// The group that the reason belongs to.
  package var cause: Cause {
    switch self {
    case .deviceBound, .backupNotEncrypted, .passcodeOnly: .protection
    case .hardwareKey, .systemBound, .needsAuthentication, .sharedGroup, .appClip: .exclusion
    case .deleted: .deletion
    case .noClassKey, .tagMismatch, .malformed, .unsupportedVersion: .damage
    }
  }

  /// Whether the item or its key is damaged, rather than excluded by a rule.
  package var isDamage: Bool { cause == .damage }

  /// Whether another copy of the backup may contain the item intact.
  package var isLostInThisCopy: Bool { isDamage && self != .unsupportedVersion }

  /// Whether the user has to act: sign in again, move what the item protects, or find another copy of the backup.
  ///
  /// All other items need nothing: the device recreates them, they return when the user signs in, or they were already
  /// deleted.
  package var requiresAction: Bool {
    switch cause {
    case .protection, .damage: true
    case .exclusion: self == .hardwareKey || self == .needsAuthentication
    case .deletion: false
    }
  }
}

/// The result of a move for one item. Plans, expectations and reports use these words.
///
/// The raw value is the word in JSON, reports and `explain`.
public enum ItemFate: String, Sendable, Hashable, CaseIterable, Codable {
  /// The item is on the target afterwards: it arrives, or the same or a newer item is there already.
  case migrates
  /// The item is intact but does not arrive. `Reason` states why.
  case staysBehind = "stays-behind"
  /// The item is in the backup but damaged.
  case unreadable
  /// The plan contains no matching item.
  case absent
  /// Several items match, with different results. No expectation allows this result, so an expectation about the items
  /// fails.
  case ambiguous
}

/// A warning about an item that arrives with a value that may be unusable.
///
/// The raw value is the word in reports, JSON and `explain`.
public enum ArrivalWarning: String, Sendable, CaseIterable, Hashable, Codable {
  /// The value has the format of a key that only the source device's Secure Enclave can use, and the target is another
  /// device.
  case migratesButUnusable = "migrates-but-unusable"
  /// The value has the same format, and the target is or may be the source device. No source states whether the Secure
  /// Enclave still accepts the key there after a restore.
  case useNotKnown = "use-not-known"

  /// Creates the warning for an item that arrives and whose value is a Secure Enclave key.
  ///
  /// - Parameter isSameDevice: Whether the target is the source device, or `nil` if that is not proven.
  package init(forSecureEnclaveKeyOnSameDevice isSameDevice: Bool?) {
    self = isSameDevice == false ? .migratesButUnusable : .useNotKnown
  }
}
