package import KeychainRules

extension TransferWay {
  /// The way, for people.
  package var words: String {
    switch self {
    case .encryptedBackup: "backup with a password"
    case .unencryptedBackup: "backup without one"
    case .directTransfer: "direct transfer (Quick Start)"
    case .iCloudKeychain: "iCloud Keychain"
    }
  }

  /// The page about all ways together.
  package static let explanation = Explanation(
    id: "ways", headline: "on which ways an item can come to another device",
    rule: "A restored backup brings what its keys let go. A direct transfer (Quick Start) brings items that do not "
      + "synchronize without a password, unless their class is of this device only. iCloud Keychain brings what is "
      + "marked to synchronize, apart from every backup, and only while it is turned on.",
    effect: "An item of this device only takes none of the ways. What a direct transfer does with items that "
      + "synchronize, have an access control or a token, are the system's, a group's or an App Clip's is not published: "
      + "such an answer is \"not known\".",
    action: "Take the way that brings most: \"\(Commands.comparing)\" counts the items, \"\(Commands.why)\" tells "
      + "of one.",
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
    case .synchronized: "it is marked to synchronize, where iCloud Keychain is on"
    case .notSynchronized: "it is not marked to synchronize"
    case .reason(let reason): reason.rawValue
    case .sealed: "what decides it is sealed with the item"
    case .noSource: "no published source says it"
    }
  }
}

extension Reason {
  /// On which other ways an item may come to another device that this one keeps, for the page of the reason.
  var otherWays: String {
    switch self {
    case .deviceBound, .passcodeOnly:
      "None: what is of this device only takes neither a direct transfer nor iCloud Keychain."
    case .backupNotEncrypted:
      "A backup with a password; a direct transfer (Quick Start), if the item does not synchronize; iCloud Keychain, if "
        + "it does."
    case .hardwareKey, .systemBound, .needsAuthentication, .appClip:
      "iCloud Keychain, if the item is marked to synchronize and its class is not of this device only. What a direct "
        + "transfer does with such an item is not known."
    case .sharedGroup: "The group. What a direct transfer does with such an item is not known."
    case .deleted: "None: there is nothing left to bring."
    case .noClassKey, .tagMismatch, .malformed, .unsupportedVersion:
      "Those of the item on the device itself, which this copy cannot tell: see \"\(Commands.explaining("ways"))\"."
    }
  }
}
