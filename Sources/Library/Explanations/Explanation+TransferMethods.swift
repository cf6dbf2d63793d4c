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
