public import KeyhaulKit

/// What a backup cannot show: items of its device that were left out when it was made.
///
/// A report of a backup counts what is in the backup; that nothing of it stays behind says nothing of these. Every such
/// report, in text, JSON or as a page, has `sentence` once.
///
/// Source: Apple `SecItemDb.c` (`SecServerCopyKeychainPlist`, `s3dl_export_row`); docs/Rules.md, "What a backup leaves
/// out". Tombstones are left out as well, and are no items.
public enum BackupBlindSpots {
  /// Why an item is in no backup, in the order of `Reason`.
  public static let reasons: [Reason] = Reason.allCases.filter { $0.blindSpotDescription != nil }

  /// "passcode-only items, keys held by a token, … and items of App Clips"
  public static let words = HumanReadable.list(reasons.compactMap(\.blindSpotDescription))

  /// The topic of `explain` with the whole text.
  package static let topic = "never-in-backup"

  /// The line that every report of a backup has once, as text or page.
  public static let line = "A backup cannot show items left out of it: \(SuggestedCommands.explaining(topic))"

  /// The whole sentence, in documents and in `explain`.
  public static let sentence =
    "A backup cannot show items that never entered it, and no report on a backup counts them: \(words)."

  /// What such items may be for, and what to do while the device still opens them: what follows the sentence where a
  /// report is about a device that is wiped or replaced.
  public static let guidance =
    "Such items may be keys of payment and banking apps, passkeys that only the device's own chip can use, or an "
    + "authenticator's codes behind Face ID. Before you wipe the device, open each app that matters to you, and "
    + "export or move what it protects."
}

extension Reason {
  /// What the items are called that no backup holds for this reason; `nil` if a backup may hold them.
  fileprivate var blindSpotDescription: String? {
    switch self {
    case .passcodeOnly: "passcode-only items"
    case .hardwareKey: "keys of a token"
    case .systemBound: "the system's own items"
    case .needsAuthentication: "items that require authentication"
    case .sharedGroup: "copies of shared groups"
    case .appClip: "items of App Clips"
    case .deviceBound, .backupNotEncrypted, .deleted, .noClassKey, .tagMismatch, .malformed, .unsupportedVersion: nil
    }
  }
}

extension PlanDocument.BackupLimitation {
  /// What no backup shows, as the documents of a backup say it.
  package static let unseenItems = PlanDocument.BackupLimitation(
    sentence: BackupBlindSpots.sentence, guidance: BackupBlindSpots.guidance, reasons: BackupBlindSpots.reasons)
}
