package import KeyhaulKit

extension TransferMethod {
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
    id: "ways", headline: "how an item can move to another device",
    rule: "Restoring a backup moves the items that the target can decrypt. A direct transfer (Quick Start) needs no "
      + "password. It moves the items that do not sync, except those in a this-device-only class. iCloud Keychain "
      + "needs no backup. It moves the items flagged to sync, but only while it is turned on.",
    effect: "A this-device-only item cannot move. Apple has not published what a direct transfer does with items "
      + "that sync, items with an access control or a token, and items of the system, a group or an App Clip. "
      + "For these items, the answer is \"not known\".",
    action: "Choose the method that moves the most items. \"\(SuggestedCommands.comparing)\" counts them, and "
      + "\"\(SuggestedCommands.why)\" explains one item.",
    source: "Apple DTS, Developer Forums threads 788360 (Quick Start, classes) and 93373 (backups; iCloud Keychain can "
      + "be off); Apple, kSecAttrSynchronizable")
}

extension TransferAssessment {
  /// "yes: it is marked to synchronize"
  package var words: String { "\(verdict.words): \(rationale.words)" }
}

extension TransferAssessment.Verdict {
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

extension TransferRationale {
  /// The reason in words.
  package var words: String {
    switch self {
    case .restored: "a restore moves it"
    case .movableClass: "its class is not bound to the device"
    case .synchronized: "it is flagged to sync, so it moves if iCloud Keychain is on"
    case .notSynchronized: "it is not flagged to sync"
    case .reason(let reason): reason.rawValue
    case .sealed: "the attribute that decides this is encrypted with the item"
    case .noSource: "Apple has not published whether it moves"
    }
  }
}

extension Reason {
  /// On which other ways an item may come to another device that this one keeps, for the page of the reason.
  package var otherWays: String {
    switch self {
    case .deviceBound, .passcodeOnly:
      "None. Neither a direct transfer nor iCloud Keychain moves this-device-only items."
    case .backupNotEncrypted:
      "A backup with a password. Also a direct transfer (Quick Start) if the item does not sync, or iCloud Keychain "
        + "if it does."
    case .hardwareKey, .systemBound, .needsAuthentication, .appClip:
      "iCloud Keychain, if the item is flagged to sync and its class is not this-device-only. Whether a direct "
        + "transfer moves such an item is not known."
    case .sharedGroup: "The group. Whether a direct transfer moves such an item is not known."
    case .deleted: "None. The item no longer exists."
    case .noClassKey, .tagMismatch, .malformed, .unsupportedVersion:
      "This copy does not show the item's attributes, so Keyhaul cannot say. See \"\(SuggestedCommands.explaining("ways"))\"."
    }
  }
}

extension SourceDeviceItems {
  /// That the device is available, as of when, and how far it is known to be the one that made the backup.
  package var statement: String {
    let who = isProven ? "which made this backup" : "whose identifier is in this backup"
    var text = "Compared with \(device), \(who), as it is now (revision \(revision))."
    if !isProven { text += " No item in the backup proves that \(device) is the source device." }
    if hasChanged { text += " \(device) has changed since the backup: \(HumanReadable.list(changes))." }
    if possiblyIncludedCount > 0 {
      text +=
        " \(HumanReadable.count(possiblyIncludedCount, "item")) on it may be among the backup's items that cannot be decrypted."
    }
    return text
  }

  private var changes: [String] {
    func item(_ count: Int) -> String { HumanReadable.count(count, "item") }
    return [
      since.isEmpty ? nil : "\(item(since.count)) on it \(since.count == 1 ? "is" : "are") not in the backup",
      changedCount == 0 ? nil : "\(item(changedCount)) \(changedCount == 1 ? "differs" : "differ")",
      removedCount == 0
        ? nil
        : "\(item(removedCount)) of the backup \(removedCount == 1 ? "is" : "are") no longer on it, so other items that the "
          + "backup omits may be gone too",
    ].compactMap(\.self)
  }

  /// "4 items on old-phone are never in a backup" and what else is on the device alone; `nil` if the backup holds all.
  package var absence: String? {
    let parts = [
      (never.count, "never in a backup"), (unreadable.count, "damaged there and never in a backup"),
      (since.count, "not in this backup"),
    ].filter { $0.0 > 0 }
    guard !parts.isEmpty else { return nil }
    return parts.enumerated().map { position, part in
      let items = position == 0 ? "\(HumanReadable.count(part.0, "item")) on \(device)" : HumanReadable.grouped(part.0)
      return "\(items) \(part.0 == 1 ? "is" : "are") \(part.1)"
    }.joined(separator: ", ")
  }
}

extension ItemExplanation {
  /// The recommended action; `nil` if none is necessary.
  package var action: String? {
    if case .targetOnly(let isRemoved) = location {
      return isRemoved ? GlossaryTerm.removed.explanation.action : nil
    }
    if case .missing(_, nil) = location { return "Make a new backup." }
    if let reason { return reason.explanation.action }
    if let warning = onTarget?.warning { return warning.explanation.action }
    if onTarget == nil, containsSecureEnclaveKey == true {
      return ArrivalWarning.migratesButUnusable.explanation.action
    }
    return onTarget?.outcome.change.map(\.explanation.action)
  }
}
