import KeyhaulKit

extension Explanation {
  /// The explanations of the findings about a backup, in the order of the enumeration, except two kinds that
  /// `GlossaryTerm` explains.
  package static let findings: [Explanation] = BackupFinding.Kind.allCases.compactMap(page)

  private static func page(_ kind: BackupFinding.Kind) -> Explanation? {
    switch kind {
    case .manifestUnreadable, .manifestMissing, .versionMissing, .keybagUnusable, .classKeysDamaged, .falseClaim,
      .decryptedCopy, .passwordDenied, .wrapsUnusual:
      manifestPage(kind)
    case .stateMissing, .propertyListUnreadable: propertyListPage(kind)
    case .listTrailingBytes, .listJournalUnread, .listDamaged, .listNamesNotUTF8, .payloadsRenamed, .listUnreadable:
      fileListPage(kind)
    case .keychainMissing, .keychainDamaged, .keychainInXML, .keychainKeysUnknown: keychainPage(kind)
    // `GlossaryTerm` explains these kinds.
    case .keybagMismatch, .sealBroken: nil
    }
  }

  private static func manifestPage(_ kind: BackupFinding.Kind) -> Explanation? {
    switch kind {
    case .manifestUnreadable:
      makePage(
        kind, "Manifest.plist cannot be read",
        rule: "Manifest.plist contains the keybag, and says whether the backup has a password.",
        effect:
          "Without it, no key is available. inspect shows what is left; every other command refuses the backup (exit "
          + "code 13).",
        action: anotherCopy)
    case .manifestMissing:
      makePage(
        kind, "Manifest.plist is missing, and Manifest.db is read",
        rule:
          "Every backup has a Manifest.plist, which contains its keybag. Some tools that decrypt a backup leave only "
          + "Manifest.db.",
        effect:
          "Keyhaul reads Manifest.db as an unencrypted list of files. Nothing shows whether the backup is complete. Its "
          + "files can be listed and exported, but no item can be decrypted. plan, diff, an export of items and every "
          + "command that restores or writes a backup refuse it (exit code 13).",
        action: "Use the backup that the copy was made from; export --files extracts unencrypted files.")
    case .versionMissing:
      makePage(
        kind, "Manifest.plist has no version",
        rule: "Every device writes Version into Manifest.plist.",
        effect:
          "Nothing is lost, and everything can be read. No device writes such a file, so restore and rekey refuse the "
          + "backup (exit code 13).",
        action: "Use another copy of the backup, or export its items.")
    case .keybagUnusable:
      makePage(
        kind, "Manifest.plist contains no usable keybag",
        rule: "The keybag contains the wrapped keys of all items and, in a backup with a password, of all files.",
        effect:
          "No item can be decrypted. In a backup with a password, no file can either. restore and rekey refuse the "
          + "backup (exit code 13).",
        action: anotherCopy)
    case .classKeysDamaged:
      makePage(
        kind, "some class keys of the keybag cannot be unwrapped",
        rule:
          "Each protection class has its own key in the keybag. Unwrapping the key shows whether its bytes are right "
          + "(RFC 3394).",
        effect:
          "Items and files that need these keys cannot be decrypted; all others can. If items need them, restore asks "
          + "first. rekey refuses the backup (exit code 13).",
        action: "Use another copy of the backup, or restore the items that can be decrypted.")
    case .falseClaim:
      makePage(
        kind, "Manifest.plist says that there is a password, but nothing is encrypted",
        rule: "If IsEncrypted is true, a device encrypts the manifest and the files.",
        effect:
          "Nothing is lost, but the backup is less protected than it claims. It can be inspected. restore and rekey "
          + "refuse it (exit code 14).",
        action: "Use another copy of the backup; do not rely on the password of this copy.")
    case .decryptedCopy:
      makePage(
        kind, "the backup is a decrypted copy, made by convert --decrypted",
        rule:
          "Its files are not encrypted, and only its keychain items need the password. No device writes or accepts such "
          + "a backup.",
        effect:
          "Nothing is lost, but anyone can read the files. restore and rekey refuse the copy (exit code 14). A plan "
          + "shows the result for the original backup.",
        action: "Restore the original backup.")
    case .passwordDenied:
      makePage(
        kind, "Manifest.plist says that there is no password, but its parts were made with one",
        rule: "Only a backup with a password has a ManifestKey, or a keybag with a DPIC count.",
        effect:
          "Manifest.plist was changed, by accident or on purpose. The backup can be inspected. restore and rekey refuse "
          + "it (exit code 14).",
        action: "Use another copy of the backup.")
    case .wrapsUnusual:
      makePage(
        kind, "class keys are wrapped in a way that no device uses",
        rule: "In a backup with a password, a device wraps every class key with the password. It wraps the keys of "
          + "migratable classes with nothing else.",
        effect:
          "An extra layer prevents items from being decrypted. A missing layer means less protection. restore and rekey "
          + "refuse the backup (exit code 13).",
        action: anotherCopy)
    default: nil
    }
  }

  private static func propertyListPage(_ kind: BackupFinding.Kind) -> Explanation? {
    switch kind {
    case .stateMissing:
      makePage(
        kind, "Status.plist does not say whether the backup was finished",
        rule: "A device records its progress in SnapshotState of Status.plist; \"finished\" means that the backup is "
          + "complete.",
        effect: "Nothing shows whether a part is missing. restore refuses the backup (exit code 13).",
        action: "Use another copy of the backup, or export its items.")
    case .propertyListUnreadable:
      makePage(
        kind, "Info.plist or Status.plist cannot be read",
        rule:
          "Info.plist describes the device, its apps and the date. Status.plist records the progress of the backup.",
        effect:
          "No item and no file is lost. Without Info.plist, reports contain fewer names. Without Status.plist, restore "
          + "refuses the backup (exit code 13).",
        action:
          "If it is Info.plist: nothing. If it is Status.plist: use another copy of the backup, or export its items.")
    default: nil
    }
  }

  private static func fileListPage(_ kind: BackupFinding.Kind) -> Explanation? {
    switch kind {
    case .listTrailingBytes:
      makePage(
        kind, "Manifest.db has bytes after its last page",
        rule:
          "The header of an SQLite file states the number of pages. SQLite does not read bytes after the last page.",
        effect:
          "Nothing is lost. SQLite may leave whole pages there, and restore accepts them. Other bytes show that the "
          + "file was cut off or changed by another program, and restore refuses the backup (exit code 13). rekey "
          + "refuses it in both cases.",
        action: "If the bytes are not whole pages, use another copy of the backup.")
    case .listJournalUnread:
      makePage(
        kind, "part of a log or a journal next to Manifest.db is not read",
        rule:
          "Keyhaul reads Manifest.db-wal and Manifest.db-journal with the manifest, as SQLite does. It does not read a "
          + "part that does not match the manifest or belongs to an unfinished change.",
        effect:
          "Keyhaul does not see files listed only in this part. restore and rekey refuse the backup (exit code 13).",
        action: "Use another copy of the backup; export --files writes the files that the manifest lists.")
    case .listNamesNotUTF8:
      makePage(
        kind, "a name in the manifest is not UTF-8",
        rule: "Keyhaul shows the byte F5, for example, as %F5. Identifiers are computed from the original bytes.",
        effect:
          "Nothing is lost. export --files writes the file under the name that is shown; the export's manifest records "
          + "the original bytes. export --domain --path accepts the name as it is shown.",
        action: "Nothing. Rename the files if you need other names.")
    case .payloadsRenamed:
      makePage(
        kind, "stored files do not have the names that a device gives them",
        rule:
          "Since iOS 10, the stored file 7dfd... belongs in the 7d folder; before that, next to the manifest. If it is "
          + "not there, Keyhaul looks for its name in capitals and in the other place. If it finds several such "
          + "files, it reads none of them.",
        effect:
          "A stored file that Keyhaul finds is not lost. Programs that look only for the right name do not find it.",
        action: "Make a copy with convert, which gives each stored file its right name.")
    case .listDamaged:
      makePage(
        kind, "part of the manifest is damaged or cut off",
        rule:
          "Keyhaul checks the pages and the indexes of Manifest.db. If one fails, Keyhaul tries each row separately.",
        effect:
          "A file can be read if its row is undamaged. Keyhaul counts the other files if they are listed anywhere. "
          + "restore and rekey refuse the backup (exit code 13).",
        action: "Use another copy of the backup; export --files writes what is left.")
    case .listUnreadable:
      makePage(
        kind, "no part of the manifest can be read",
        rule:
          "Manifest.db (in old backups: Manifest.mbdb) says which stored file is which. The keychain is one of these "
          + "files.",
        effect: "No file and no item can be read. restore refuses the backup (exit code 13).",
        action: anotherCopy)
    default: nil
    }
  }

  private static func keychainPage(_ kind: BackupFinding.Kind) -> Explanation? {
    switch kind {
    case .keychainMissing:
      makePage(
        kind, "the keychain file is listed but not stored",
        rule: keychainFileRule,
        effect:
          "No item can be read, but the other files can. plan, restore, diff and an export of items refuse the backup "
          + "(exit code 13).",
        action: "Use another copy of the backup; export --files writes its files.")
    case .keychainDamaged:
      makePage(
        kind, "the keychain file cannot be read",
        rule: keychainFileRule,
        effect:
          "No item can be read, but the other files can. plan, restore, diff and an export of items refuse the backup "
          + "(exit code 13).",
        action: "Use another copy of the backup; export --files writes its files.")
    case .keychainInXML:
      makePage(
        kind, "the keychain file is an XML property list",
        rule: "Devices write the binary format.",
        effect: "Nothing is lost: each item can be decrypted. A program wrote the file, not a device.",
        action: "Nothing.")
    case .keychainKeysUnknown:
      makePage(
        kind, "the keychain file has keys that do not name a kind of item",
        rule: "The keychain file contains a list for each kind of item: passwords, certificates, keys.",
        effect: "Keyhaul reads every item of a known kind, and ignores the values of the other keys.",
        action: "Nothing.")
    default: nil
    }
  }

  static let anotherCopy = "Use another copy of the backup."
  private static let keychainFileRule = "All items are in one file: keychain-backup.plist in KeychainDomain."

  private static func makePage(
    _ kind: BackupFinding.Kind, _ headline: String, rule: String, effect: String, action: String
  ) -> Explanation {
    Explanation(
      id: kind.rawValue, headline: headline, rule: rule, effect: effect, action: action,
      source: "Keyhaul, docs/Format.md")
  }
}
