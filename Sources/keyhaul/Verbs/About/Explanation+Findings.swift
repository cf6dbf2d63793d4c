import BackupArchive
import CommandArguments
import Reports

extension Explanation {
  /// What reading a backup goes around, in the order of the enumeration; two of the words have a page as words of a move.
  static let findings: [Explanation] = ArchiveFinding.Kind.allCases.compactMap(page)

  private static func page(_ kind: ArchiveFinding.Kind) -> Explanation? {
    switch kind {
    case .manifestUnreadable, .manifestMissing, .versionMissing, .keybagUnusable, .classKeysDamaged, .falseClaim,
      .decryptedCopy, .passwordDenied, .wrapsUnusual:
      ofManifest(kind)
    case .stateMissing, .propertyListUnreadable: ofPropertyList(kind)
    case .listTrailingBytes, .listJournalUnread, .listDamaged, .listNamesNotUTF8, .payloadsRenamed, .listUnreadable:
      ofList(kind)
    case .keychainMissing, .keychainDamaged, .keychainInXML, .keychainKeysUnknown: ofKeychain(kind)
    // Words of a move, of which Reports has the pages.
    case .keybagMismatch, .sealBroken: nil
    }
  }

  private static func ofManifest(_ kind: ArchiveFinding.Kind) -> Explanation? {
    switch kind {
    case .manifestUnreadable:
      of(
        kind, "nothing of Manifest.plist can be read",
        "Every backup says in Manifest.plist whether it has a password, and holds its keybag there.",
        "No key can be had without it. inspect shows what is left; every other verb refuses the backup (exit code 13).",
        anotherCopy)
    case .manifestMissing:
      of(
        kind, "Manifest.plist is missing, and Manifest.db is read",
        "Every backup has a Manifest.plist, which holds its keybag. Some tools that decrypt a backup leave Manifest.db without it.",
        "The manifest database was read as an unencrypted list, and nothing shows whether the backup is whole. Its files can be "
          + "listed and exported; no item can be decrypted. plan, diff, an export of items and every command that restores or "
          + "writes a backup refuse it (exit code 13).",
        "Use the backup that the copy was made from; export --files extracts unencrypted files.")
    case .versionMissing:
      of(
        kind, "Manifest.plist does not say its version", "Every device writes Version into Manifest.plist.",
        "Nothing is lost, and everything can be read. A restore and a change of the password are refused (exit code "
          + "13): no device wrote the file as it is.",
        "Use another copy of the backup, or take its items out with export.")
    case .keybagUnusable:
      of(
        kind, "the manifest holds no keybag that can be used",
        "The keybag holds, wrapped, the keys of all items, and of all files of a backup with a password.",
        "No item can be had, and of a backup with a password no file. A restore and a change of the password are "
          + "refused (exit code 13).",
        anotherCopy)
    case .classKeysDamaged:
      of(
        kind, "some class keys of the keybag do not unwrap",
        "Each protection class has a key of its own in the keybag, and unwrapping one shows whether its bytes are "
          + "right (RFC 3394).",
        "What is under these keys cannot be had; everything else opens. A restore asks where items need them; a change "
          + "of the password is refused (exit code 13).",
        "Use another copy of the backup, or restore what opens.")
    case .falseClaim:
      of(
        kind, "the manifest says that there is a password, and everything is in clear",
        "Where IsEncrypted is true, a device encrypts the list of files and the files.",
        "Nothing is lost, and the backup protects less than it claims. It can be looked at; a restore and a change of "
          + "the password are refused (exit code 14).",
        "Use another copy of the backup; do not rely on this one's password.")
    case .decryptedCopy:
      of(
        kind, "the backup is a decrypted copy, made by convert --decrypted",
        "Its files are not encrypted, and only the items of its keychain need the password. No device writes such a backup, or "
          + "takes one.",
        "Nothing is lost, and anybody can read the files. A restore and a change of the password are refused (exit code "
          + "14); a plan says what the backup that it was made of would do.",
        "Restore the backup that it was made of.")
    case .passwordDenied:
      of(
        kind, "the manifest says that there is no password, and its parts were made under one",
        "A ManifestKey, and a keybag with the count DPIC, are only in a backup with a password.",
        "The claim was changed, by accident or on purpose. It can be looked at; a restore and a change of the password "
          + "are refused (exit code 14).",
        "Use another copy of the backup.")
    case .wrapsUnusual:
      of(
        kind, "class keys are wrapped as no device wraps them",
        "With a password, a device wraps the keys of the classes that may move with the password alone, and no class "
          + "key without it.",
        "A layer too many keeps items from opening; one too few protects less. A restore and a change of the password "
          + "are refused (exit code 13).",
        anotherCopy)
    default: nil
    }
  }

  private static func ofPropertyList(_ kind: ArchiveFinding.Kind) -> Explanation? {
    switch kind {
    case .stateMissing:
      of(
        kind, "Status.plist does not say whether the backup was finished",
        "A device writes into SnapshotState of Status.plist how far it came; \"finished\" is the end.",
        "Nothing shows that a part is missing, and nothing that none is. A restore is refused (exit code 13).",
        "Use another copy of the backup, or take its items out with export.")
    case .propertyListUnreadable:
      of(
        kind, "Info.plist or Status.plist cannot be read",
        "Info.plist tells of the device, its apps and the date; Status.plist how far the backup came.",
        "No item and no file is lost. Without Info.plist reports have fewer names; without Status.plist a restore is "
          + "refused (exit code 13).",
        "Nothing where Info.plist is meant; else another copy of the backup, or export.")
    default: nil
    }
  }

  private static func ofList(_ kind: ArchiveFinding.Kind) -> Explanation? {
    switch kind {
    case .listTrailingBytes:
      of(
        kind, "bytes stand behind the last page of Manifest.db",
        "The header of an SQLite file counts its pages, and nobody reads what stands behind the last one.",
        "Nothing is lost. SQLite itself may leave whole pages, and a restore takes those; other bytes tell of a cut or "
          + "of a foreign hand, and a restore is refused. A change of the password is refused with either (exit code 13).",
        "Use another copy of the backup where the bytes are not whole pages.")
    case .listJournalUnread:
      of(
        kind, "a log or a journal beside Manifest.db is not read",
        "Manifest.db-wal and Manifest.db-journal are read with the list as SQLite reads them. What does not fit the list, "
          + "and a change that was not finished, is not read.",
        "Files that only this part names are not seen. A restore and a change of the password are refused (exit code 13).",
        "Use another copy of the backup; export --files takes out what the list names.")
    case .listNamesNotUTF8:
      of(
        kind, "a name in the list of files is not UTF-8",
        "A name is shown with %F5 for the byte F5. Identifiers are the hash of the bytes as they are in the list.",
        "Nothing is lost. export --files writes the file under the name that is shown, and its manifest has the bytes; "
          + "export --domain --path takes the name as it is shown.",
        "Nothing; rename the files where you need other names.")
    case .payloadsRenamed:
      of(
        kind, "payloads have other names than a device gives them",
        "Since iOS 10 payload 7dfd... belongs in the folder 7d, before that beside the list of files. If nothing has its "
          + "own name, it is found in capitals and in the other place too. Of several such files none is read.",
        "Nothing of a payload that is found is lost. Programs that look for its own name alone do not find it.",
        "Make a copy with convert, which gives each payload its own name.")
    case .listDamaged:
      of(
        kind, "a part of the list of files is damaged or cut off",
        "The pages of Manifest.db are checked. Where one fails, each row of the list is tried for itself.",
        "Files whose rows can be read can be had; the others are counted where anything names them. A restore and a "
          + "change of the password are refused (exit code 13).",
        "Use another copy of the backup; export --files takes out what is left.")
    case .listUnreadable:
      of(
        kind, "nothing of the list of files can be read",
        "Manifest.db, and Manifest.mbdb in old backups, say which stored file is which; the keychain is one of them.",
        "No file and no item can be had. A restore is refused (exit code 13).", anotherCopy)
    default: nil
    }
  }

  private static func ofKeychain(_ kind: ArchiveFinding.Kind) -> Explanation? {
    switch kind {
    case .keychainMissing:
      of(
        kind, "the keychain's file is listed and not stored", inOneFile,
        "No item can be had; the other files can. plan, restore, diff and an export of items refuse the backup (exit "
          + "code 13).",
        "Use another copy of the backup; export --files takes out its files.")
    case .keychainDamaged:
      of(
        kind, "nothing of the keychain's file can be read", inOneFile,
        "No item can be had; the other files can. plan, restore, diff and an export of items refuse the backup (exit "
          + "code 13).",
        "Use another copy of the backup; export --files takes out its files.")
    case .keychainInXML:
      of(
        kind, "the keychain's file is a property list in XML", "Devices write it in the binary form.",
        "Nothing is lost: each item opens as it was written. Another program than a device wrote the file.",
        "Nothing needs to be done.")
    case .keychainKeysUnknown:
      of(
        kind, "the keychain's file has keys that are no kind of item",
        "It holds a list for each kind of item: passwords, certificates, keys.",
        "Every item of a known kind is read; what stands under the other keys is left alone.",
        "Nothing needs to be done.")
    default: nil
    }
  }

  static let anotherCopy = "Use another copy of the backup."
  private static let inOneFile = "All items are in one file, keychain-backup.plist of the domain KeychainDomain."

  private static func of(
    _ kind: ArchiveFinding.Kind, _ headline: String, _ rule: String, _ effect: String, _ action: String
  ) -> Explanation {
    Explanation(
      id: kind.rawValue, headline: headline, rule: rule, effect: effect, action: action,
      source: "Keyhaul, docs/Format.md")
  }
}
