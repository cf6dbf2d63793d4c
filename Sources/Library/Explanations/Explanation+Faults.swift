import KeyhaulKit

extension Explanation {
  /// The explanations of `verify`'s faults, in the order of the enumeration, except for kinds that are explained
  /// elsewhere.
  package static let faults: [Explanation] = BackupVerification.Fault.Kind.allCases.compactMap(page)

  private static func page(_ kind: BackupVerification.Fault.Kind) -> Explanation? {
    switch kind {
    case .payloadMissing, .payloadCut, .payloadUnreadable, .digestMismatch, .paddingInvalid, .recordMalformed:
      payloadPage(kind)
    case .structureDamaged, .unfinished, .keybagDamaged, .hardwareLayerMissing, .databaseDamaged, .itemDamaged:
      structurePage(kind)
    // `findings` contains the explanations of these kinds.
    case .falseClaim, .passwordDenied, .wrapsUnusual, .keychainDamaged: nil
    // `GlossaryTerm` explains these kinds.
    case .keybagMismatch, .sealBroken: nil
    }
  }

  private static func payloadPage(_ kind: BackupVerification.Fault.Kind) -> Explanation? {
    switch kind {
    case .payloadMissing:
      makePage(
        kind, "a file is listed but not stored",
        rule: "The manifest lists the files of the backup. The bytes of each file are stored under a separate name.",
        effect: "This file is lost in this copy. The other files are not affected.",
        action: "Use another copy of the backup for this file. Missing files are typical of an interrupted copy.")
    case .payloadCut:
      makePage(
        kind, "a stored file is cut short",
        rule:
          "An encrypted file consists of whole blocks of 16 bytes and ends with padding. The manifest records its size.",
        effect: "This file differs from what was written. The other files are not affected.",
        action: anotherCopyForFile)
    case .payloadUnreadable:
      makePage(
        kind, "a stored file's bytes cannot be read",
        rule: "The system or the archive's format reports an error, or there is a link in place of the file.",
        effect: "It is not known whether the file is intact.",
        action: "Check the disk and the permissions, and verify again.")
    case .digestMismatch:
      makePage(
        kind, "a file's bytes do not match the digest in the manifest",
        rule: "Some manifests record a digest of the stored bytes. Keyhaul computes it again.",
        effect:
          "The file or its record was changed. If it is the keychain file, items may still be intact, because each has "
          + "its own authentication tag.",
        action: anotherCopyForFile)
    case .paddingInvalid:
      makePage(
        kind, "a file does not end with valid padding",
        rule:
          "An encrypted file ends with padding (AES-CBC, PKCS #7). A wrong key or changed bytes almost never produce "
          + "valid padding.",
        effect: "At least the end of the file was changed.",
        action: anotherCopyForFile)
    case .recordMalformed:
      makePage(
        kind, "the manifest has a row that no device writes",
        rule:
          "Each row records the file's size, protection class and key. The row's identifier is the SHA-1 of domain and "
          + "path, and occurs only once.",
        effect: "Keyhaul does not read the file of this row, or treats it as unreliable.",
        action: anotherCopyForFile)
    default: nil
    }
  }

  private static func structurePage(_ kind: BackupVerification.Fault.Kind) -> Explanation? {
    switch kind {
    case .structureDamaged:
      makePage(
        kind, "a property list that belongs to every backup is damaged or missing",
        rule: "A backup has Manifest.plist, Status.plist and Info.plist.",
        effect:
          "Without a complete Manifest.plist and Status.plist, Keyhaul restores nothing. Without Info.plist, reports "
          + "contain fewer names.",
        action: anotherCopy)
    case .unfinished:
      makePage(
        kind, "the device did not finish the backup",
        rule: "Status.plist records the device's progress; \"finished\" means that the backup is complete.",
        effect:
          "Files and items may be missing, and Keyhaul cannot tell which. plan and restore refuse the backup (exit code "
          + "13).",
        action: "Make the backup again, or use an older one.")
    case .keybagDamaged:
      makePage(
        kind, "the keybag contradicts itself, or one of its keys cannot be unwrapped",
        rule:
          "The keybag contains a wrapped key for each protection class. Unwrapping a key shows whether its bytes are "
          + "right.",
        effect: "Items and files that need such a key cannot be decrypted. All others can.",
        action: anotherCopy)
    case .hardwareLayerMissing:
      makePage(
        kind, "class keys are not bound to the device, although every device binds them",
        rule:
          "A device wraps the keys of this-device-only items with its device key. In a backup without a password, it "
          + "wraps every keychain key this way.",
        effect:
          "If the backup has a password, items with these keys can be decrypted on any device. If the backup has no "
          + "password, anyone can decrypt them and may have written them, so plan and restore refuse the backup (exit "
          + "code 14).",
        action: "Do not rely on these items being bound to the device. Make a new backup.")
    case .databaseDamaged:
      makePage(
        kind, "the manifest cannot be read to its end",
        rule: "Manifest.db (in old backups: Manifest.mbdb) says which stored file belongs to which path.",
        effect:
          "Files listed only in the lost part are lost too. The report says how much can be read, if that is known.",
        action: anotherCopy)
    case .itemDamaged:
      makePage(
        kind, "an item cannot be decrypted, or no device accepts it",
        rule:
          "Each item has an authentication tag (AES-GCM), which shows any changed byte. The decrypted contents must be "
          + "valid for an item of its kind.",
        effect:
          "Keyhaul does not restore this item, but restores the others. The report states the reason, and explain has a "
          + "page for it.",
        action: "Use another copy of the backup for this item.")
    default: nil
    }
  }

  private static let anotherCopyForFile = "Use another copy of the backup for that file."

  private static func makePage(
    _ kind: BackupVerification.Fault.Kind, _ headline: String, rule: String, effect: String, action: String
  ) -> Explanation {
    Explanation(
      id: kind.rawValue, headline: headline, rule: rule, effect: effect, action: action,
      source: "Keyhaul, docs/Format.md")
  }
}
