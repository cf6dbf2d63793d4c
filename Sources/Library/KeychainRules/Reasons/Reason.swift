/// Why an item does not arrive on the other device. The raw value is the identifier that reports, JSON and `explain` use.
///
/// Nothing but data: what is said of a reason to people, and where its rule is published, stands in Reports.
public enum Reason: String, Sendable, CaseIterable, Hashable, Codable {
  /// This device only, and the target is not the device that made the backup.
  case deviceBound = "device-bound"
  /// Migratable, but the backup has no password, so that its keys need the device that made it.
  case backupNotEncrypted = "backup-not-encrypted"
  /// Kept only while a passcode is set; never exported.
  case passcodeOnly = "passcode-only"
  /// A token, such as the Secure Enclave or a smart card, holds what the item refers to.
  case hardwareKey = "hardware-key"
  /// One of the system's own items, which every device makes for itself.
  case systemBound = "system-bound"
  /// Guarded by an access control (biometry, presence, a password of the app).
  case needsAuthentication = "needs-authentication"
  /// The copy of an item that a group of people shares.
  case sharedGroup = "shared-group"
  /// Made by an App Clip.
  case appClip = "app-clip"
  /// The tombstone of a deleted synchronized item.
  case deleted
  /// The keybag has no usable key for the item's class.
  case noClassKey = "no-class-key"
  /// The item's bytes are not the ones that were sealed.
  case tagMismatch = "tag-mismatch"
  /// The item does not follow its format.
  case malformed
  /// The item has a version that no restore takes: that of iOS 4, which names nothing, or one that no backup should hold.
  case unsupportedVersion = "unsupported-version"
}

extension Reason {
  /// Whether it is the item or its key that is at fault, rather than a rule that leaves it out.
  public var isDamage: Bool {
    switch self {
    case .noClassKey, .tagMismatch, .malformed, .unsupportedVersion: true
    case .deviceBound, .backupNotEncrypted, .passcodeOnly, .hardwareKey, .systemBound, .needsAuthentication,
      .sharedGroup, .appClip, .deleted:
      false
    }
  }

  /// Whether another copy of the backup may hold the item whole.
  public var isLostInThisCopy: Bool { isDamage && self != .unsupportedVersion }

  /// Whether someone has to do something about it: sign in again, move what the item guards, find another copy. The other
  /// items are made again by the device, come back with an account, or were gone before.
  public var asksForAction: Bool {
    switch self {
    case .deviceBound, .backupNotEncrypted, .passcodeOnly, .hardwareKey, .needsAuthentication, .noClassKey,
      .tagMismatch, .malformed, .unsupportedVersion:
      true
    case .systemBound, .sharedGroup, .appClip, .deleted: false
    }
  }
}
