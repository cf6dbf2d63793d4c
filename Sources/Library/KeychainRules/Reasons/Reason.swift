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

/// What becomes of an item in a move, in one word: that of plans, expectations, documents and pages.
///
/// The raw value is the word that JSON, reports and `explain` use.
public enum ItemFate: String, Sendable, Hashable, CaseIterable, Codable {
  /// It is on the target afterwards: it arrives, or the same or a newer one is there.
  case migrates
  /// A rule keeps it where it is.
  case staysBehind = "stays-behind"
  /// It is in the archive and damaged.
  case unreadable
  /// No item of the plan is meant.
  case absent
  /// Several items are meant and not all share a fate: equal to none of the others, so that a test fails.
  case ambiguous
}

/// What a plan warns of beside an item that arrives: the item is there, and its value may be of no use.
///
/// The raw value is the word that reports, JSON and `explain` use.
public enum ArrivalWarning: String, Sendable, CaseIterable, Hashable, Codable {
  /// The value has the form of a key that only the Secure Enclave of the device that made it can use, and the target is
  /// another device.
  case migratesButUnusable = "migrates-but-unusable"
  /// The value has that form, and the target is that device or may be it: no source says whether the chip still takes it
  /// there after a restore.
  case useNotKnown = "use-not-known"

  /// The warning for an item that arrives and whose value is a key of the Secure Enclave.
  ///
  /// - Parameter onSameDevice: Whether the target is the device that made the backup; `nil` if nothing proves it.
  public init(ofEnclaveKeyOnSameDevice onSameDevice: Bool?) {
    self = onSameDevice == false ? .migratesButUnusable : .useNotKnown
  }
}
