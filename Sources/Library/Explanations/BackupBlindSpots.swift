public import KeyhaulKit

/// The items that a backup cannot show, because they were excluded when it was made.
///
/// A report of a backup counts only the items in the backup, so "nothing stays behind" does not include these items.
/// Every such report mentions these items once: text and pages with `line`, JSON with `sentence`.
///
/// Source: Apple `SecItemDb.c` (`SecServerCopyKeychainPlist`, `s3dl_export_row`); docs/Rules.md, "What a backup leaves
/// out". Tombstones are excluded as well, but are not items.
public enum BackupBlindSpots {
  /// The reasons why an item is in no backup, in the order of `Reason`.
  public static let reasons: [Reason] = Reason.allCases.filter { $0.explanation.absentItems != nil }

  /// The kinds of items that are in no backup: "passcode-only items, keys of a token, … and items of App Clips".
  public static let itemKinds = HumanReadable.list(reasons.compactMap(\.explanation.absentItems))

  /// The id of the `explain` page about the items that a backup cannot show.
  package static let topic = "never-in-backup"

  /// The line that every text report and every page about a backup contains once.
  public static let line = "A backup cannot show items left out of it: \(SuggestedCommands.explaining(topic))"

  /// The sentence in JSON documents and in `explain`.
  public static let sentence =
    "A backup cannot show items that never entered it, and no report on a backup counts them: \(itemKinds)."

  /// The possible uses of such items, and what to do while the device can still use them. The JSON documents and `explain`
  /// have this text next to the sentence.
  public static let guidance =
    "Such items may be keys of payment and banking apps, passkeys that only the device's own chip can use, or an "
    + "authenticator's codes behind Face ID. Before you wipe the device, open each app that matters to you, and "
    + "export or move what it protects."
}

extension PlanDocument.BackupLimitation {
  /// The items that no backup shows, for the documents of a backup.
  package static let unseenItems = PlanDocument.BackupLimitation(
    sentence: BackupBlindSpots.sentence, guidance: BackupBlindSpots.guidance, reasons: BackupBlindSpots.reasons)
}
