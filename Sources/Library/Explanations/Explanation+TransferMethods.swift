package import KeyhaulKit

extension TransferMethod {
  /// The page about all transfer methods.
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

extension Reason {
  /// The other methods that may move an item that stays behind for this reason.
  var otherWays: String {
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
