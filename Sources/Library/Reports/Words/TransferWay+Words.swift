package import KeyhaulKit

extension TransferWay {
  /// The way, for people.
  package var words: String {
    switch self {
    case .encryptedBackup: "backup with a password"
    case .unencryptedBackup: "backup without a password"
    case .directTransfer: "direct transfer (Quick Start)"
    case .iCloudKeychain: "iCloud Keychain"
    }
  }

  /// The page about all ways together.
  package static let explanation = Explanation(
    id: "ways", headline: "how an item can get to another device",
    rule: "A restored backup brings the items that its keys allow. A direct transfer (Quick Start) brings items that "
      + "do not synchronize, without a password, unless their class is this-device-only. iCloud Keychain brings items "
      + "that are flagged to synchronize, independently of any backup, and only while it is turned on.",
    effect: "A this-device-only item cannot be transferred. How a direct transfer treats some items is not published, "
      + "so the answer is \"not known\": items that synchronize, that have an access control or a token, and items of "
      + "the system, a group or an App Clip.",
    action: "Choose the method that brings the most items. \"\(Commands.comparing)\" counts them, and "
      + "\"\(Commands.why)\" explains one item.",
    source: "Apple DTS, Developer Forums threads 788360 (Quick Start, classes) and 93373 (backups; iCloud Keychain can "
      + "be off); Apple, kSecAttrSynchronizable")
}

extension TransferAnswer {
  /// "yes: it is marked to synchronize"
  package var words: String { "\(verdict.words): \(ground.words)" }
}

extension TransferAnswer.Verdict {
  /// The answer, for people.
  package var words: String {
    switch self {
    case .yes: "yes"
    case .no: "no"
    case .notKnown: "not known"
    }
  }

  /// The answer as one sign in a table.
  package var symbol: String {
    switch self {
    case .yes: "+"
    case .no: "<"
    case .notKnown: "?"
    }
  }
}

extension TransferGround {
  /// Why, for people.
  package var words: String {
    switch self {
    case .restored: "a restore brings it"
    case .movableClass: "its class is not bound to the device"
    case .synchronized: "it is flagged to synchronize, if iCloud Keychain is on"
    case .notSynchronized: "it is not flagged to synchronize"
    case .reason(let reason): reason.rawValue
    case .sealed: "the deciding attribute is encrypted with the item"
    case .noSource: "no published source says it"
    }
  }
}

extension Reason {
  /// On which other ways an item may come to another device that this one keeps, for the page of the reason.
  var otherWays: String {
    switch self {
    case .deviceBound, .passcodeOnly:
      "None: neither a direct transfer nor iCloud Keychain brings this-device-only items."
    case .backupNotEncrypted:
      "A backup with a password; a direct transfer (Quick Start), if the item does not synchronize; iCloud Keychain, if "
        + "it does."
    case .hardwareKey, .systemBound, .needsAuthentication, .appClip:
      "iCloud Keychain, if the item is flagged to synchronize and its class is not this-device-only. Whether a direct "
        + "transfer brings such an item is not known."
    case .sharedGroup: "The group. Whether a direct transfer brings such an item is not known."
    case .deleted: "None: the item no longer exists."
    case .noClassKey, .tagMismatch, .malformed, .unsupportedVersion:
      "The same as for the item on its device, which this copy does not show: see \"\(Commands.explaining("ways"))\"."
    }
  }
}
