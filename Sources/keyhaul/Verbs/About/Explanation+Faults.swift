import ArchivedKeychain
import CommandArguments
import Reports

extension Explanation {
  /// What `verify` finds, in the order of the enumeration; words that have a page elsewhere are not told twice.
  static let faults: [Explanation] = BackupVerification.Fault.Kind.allCases.compactMap(page)

  private static func page(_ kind: BackupVerification.Fault.Kind) -> Explanation? {
    switch kind {
    case .payloadMissing, .payloadCut, .payloadUnreadable, .digestMismatch, .paddingInvalid, .recordMalformed:
      ofPayload(kind)
    case .structureDamaged, .unfinished, .keybagDamaged, .hardwareLayerMissing, .databaseDamaged, .itemDamaged:
      ofStructure(kind)
    // The same words as of a finding.
    case .falseClaim, .passwordDenied, .wrapsUnusual, .keychainDamaged: nil
    // Words of a move, of which Reports has the pages.
    case .keybagMismatch, .sealBroken: nil
    }
  }

  private static func ofPayload(_ kind: BackupVerification.Fault.Kind) -> Explanation? {
    switch kind {
    case .payloadMissing:
      of(
        kind, "a file is listed and not stored",
        "The list of files names what the backup holds; the bytes of each file stand under a name of their own.",
        "This file cannot be had; the others are not touched by it.",
        "Use another copy of the backup for it. A copy that was not carried to its end looks like this.")
    case .payloadCut:
      of(
        kind, "a stored file ends before its content does",
        "An encrypted file is whole blocks of 16 bytes, the last of them padding, and the list knows its size.",
        "This file is not what was written; the others are not touched by it.", forThatFile)
    case .payloadUnreadable:
      of(
        kind, "a stored file's bytes cannot be read",
        "The system does not give them, the container that they are in does not, or a link stands in their place.",
        "Whether the file is whole is not known.", "Check the disk and the permissions, and verify again.")
    case .digestMismatch:
      of(
        kind, "a file's bytes do not have the digest that the list records",
        "Some lists record a digest of what is stored, and it is computed again.",
        "The file or its record was changed. Of the keychain's file nothing has to be lost: each item has a tag of its "
          + "own.",
        forThatFile)
    case .paddingInvalid:
      of(
        kind, "a file does not end in its padding",
        "What was encrypted ends in padding (AES-CBC, PKCS #7), which a wrong key or other bytes hardly ever give.",
        "The file is not what was written, at its end at least.", forThatFile)
    case .recordMalformed:
      of(
        kind, "a row of the list of files is not one that a device writes",
        "A row has a record with size, protection class and key; its identifier is the SHA-1 of domain and path, and is "
          + "there once.",
        "What the row names is not read, or not taken for certain.", forThatFile)
    default: nil
    }
  }

  private static func ofStructure(_ kind: BackupVerification.Fault.Kind) -> Explanation? {
    switch kind {
    case .structureDamaged:
      of(
        kind, "a property list that every backup has is damaged or missing",
        "A backup has Manifest.plist, Status.plist and Info.plist.",
        "Without a whole Manifest.plist or Status.plist nothing is restored; without Info.plist reports have fewer names.",
        anotherCopy)
    case .unfinished:
      of(
        kind, "the device did not come to the end of the backup",
        "Status.plist says how far the device came; \"finished\" is the end.",
        "Files and items may be missing, and nothing tells which. plan and restore refuse the backup (exit code 13).",
        "Make the backup again, or use an older one.")
    case .keybagDamaged:
      of(
        kind, "the keybag contradicts itself, or a key of it does not unwrap",
        "The keybag holds a wrapped key for each protection class; unwrapping one shows whether its bytes are right.",
        "What is under such a key cannot be had; everything else opens.", anotherCopy)
    case .hardwareLayerMissing:
      of(
        kind, "class keys are not bound to the device, though every device binds them",
        "A device wraps with its hardware the keys of items of this device only and, in a backup without a password, "
          + "every key of the keychain.",
        "With a password, the items under these keys open on any device. Without one, anybody can open them and can "
          + "have written them: plan and restore refuse the backup (exit code 14).",
        "Do not rely on these items being bound; make the backup again.")
    case .databaseDamaged:
      of(
        kind, "the list of files cannot be read to its end",
        "Manifest.db, and Manifest.mbdb in old backups, say which stored file is which.",
        "What the lost part names cannot be had. The report says how much can be read, where anything tells.",
        anotherCopy)
    case .itemDamaged:
      of(
        kind, "an item does not open, or no device takes it",
        "Each item has a tag over its bytes (AES-GCM), and what it holds has to make an item of its kind.",
        "This item does not come along; the others do. Beside it stands the reason, which has a page of its own.",
        "Use another copy of the backup for it.")
    default: nil
    }
  }

  private static let forThatFile = "Use another copy of the backup for that file."

  private static func of(
    _ kind: BackupVerification.Fault.Kind, _ headline: String, _ rule: String, _ effect: String, _ action: String
  ) -> Explanation {
    Explanation(
      id: kind.rawValue, headline: headline, rule: rule, effect: effect, action: action,
      source: "Keyhaul, docs/Format.md")
  }
}
