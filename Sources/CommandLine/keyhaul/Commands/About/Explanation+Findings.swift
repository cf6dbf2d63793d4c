import KeyhaulKit
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
        kind, "Manifest.plist cannot be read",
        "Manifest.plist says whether the backup has a password, and contains its keybag.",
        "Without it, no key is available. inspect shows what is left; every other command refuses the backup (exit "
          + "code 13).",
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
          + "13), because no device writes such a file.",
        "Use another copy of the backup, or export its items.")
    case .keybagUnusable:
      of(
        kind, "Manifest.plist contains no usable keybag",
        "The keybag contains the wrapped keys of all items and, in a backup with a password, of all files.",
        "No item can be decrypted. In a backup with a password, no file can either. A restore and a change of the "
          + "password are refused (exit code 13).",
        anotherCopy)
    case .classKeysDamaged:
      of(
        kind, "some class keys of the keybag do not unwrap",
        "Each protection class has a key of its own in the keybag, and unwrapping it shows whether its bytes are right "
          + "(RFC 3394).",
        "Items and files that need these keys cannot be decrypted; all others can. A restore asks if items need them. "
          + "A change of the password is refused (exit code 13).",
        "Use another copy of the backup, or restore the items that can be decrypted.")
    case .falseClaim:
      of(
        kind, "Manifest.plist says that there is a password, but everything is unencrypted",
        "If IsEncrypted is true, a device encrypts the manifest and the files.",
        "Nothing is lost, but the backup protects less than it claims. It can be inspected. A restore and a change of "
          + "the password are refused (exit code 14).",
        "Use another copy of the backup; do not rely on the password of this copy.")
    case .decryptedCopy:
      of(
        kind, "the backup is a decrypted copy, made by convert --decrypted",
        "Its files are not encrypted, and only its keychain items need the password. No device writes or accepts such "
          + "a backup.",
        "Nothing is lost, but anyone can read the files. A restore and a change of the password are refused (exit code "
          + "14). A plan shows the result for the original backup.",
        "Restore the original backup.")
    case .passwordDenied:
      of(
        kind, "Manifest.plist says that there is no password, but its parts were made with one",
        "A ManifestKey, and a keybag with the count DPIC, exist only in a backup with a password.",
        "Manifest.plist was changed, by accident or on purpose. The backup can be inspected. A restore and a change of "
          + "the password are refused (exit code 14).",
        "Use another copy of the backup.")
    case .wrapsUnusual:
      of(
        kind, "class keys are wrapped in a way that no device uses",
        "With a password, a device wraps the keys of migratable classes with the password only. It wraps every class "
          + "key with the password.",
        "An extra layer prevents items from being decrypted. A missing layer protects less. A restore and a change of "
          + "the password are refused (exit code 13).",
        anotherCopy)
    default: nil
    }
  }

  private static func ofPropertyList(_ kind: ArchiveFinding.Kind) -> Explanation? {
    switch kind {
    case .stateMissing:
      of(
        kind, "Status.plist does not say whether the backup was finished",
        "A device records its progress in SnapshotState of Status.plist; \"finished\" means that the backup is "
          + "complete.",
        "Nothing shows whether a part is missing. A restore is refused (exit code 13).",
        "Use another copy of the backup, or export its items.")
    case .propertyListUnreadable:
      of(
        kind, "Info.plist or Status.plist cannot be read",
        "Info.plist describes the device, its apps and the date. Status.plist records the progress of the backup.",
        "No item and no file is lost. Without Info.plist, reports contain fewer names. Without Status.plist, a restore "
          + "is refused (exit code 13).",
        "For Info.plist, nothing needs to be done. For Status.plist, use another copy of the backup, or export its "
          + "items.")
    default: nil
    }
  }

  private static func ofList(_ kind: ArchiveFinding.Kind) -> Explanation? {
    switch kind {
    case .listTrailingBytes:
      of(
        kind, "Manifest.db has bytes after its last page",
        "The header of an SQLite file counts its pages. SQLite does not read bytes after the last page.",
        "Nothing is lost. SQLite itself may leave whole pages, and a restore accepts those. Other bytes show that the "
          + "file was cut or changed by another program, and a restore is refused. A change of the password is refused "
          + "in both cases (exit code 13).",
        "If the bytes are not whole pages, use another copy of the backup.")
    case .listJournalUnread:
      of(
        kind, "part of a log or a journal next to Manifest.db is not read",
        "Manifest.db-wal and Manifest.db-journal are read with the manifest, as SQLite reads them. A part is not read if it "
          + "does not fit the manifest or belongs to an unfinished change.",
        "Files that only this part lists are not seen. A restore and a change of the password are refused (exit code 13).",
        "Use another copy of the backup; export --files writes the files that the manifest lists.")
    case .listNamesNotUTF8:
      of(
        kind, "a name in the manifest is not UTF-8",
        "The byte F5, for example, is shown as %F5. Identifiers are the hash of the original bytes.",
        "Nothing is lost. export --files writes the file under the name that is shown, and the export's manifest has "
          + "the bytes. export --domain --path accepts the name as it is shown.",
        "Nothing needs to be done. Rename the files if you need other names.")
    case .payloadsRenamed:
      of(
        kind, "payloads have other names than a device gives them",
        "Since iOS 10 payload 7dfd... belongs in the folder 7d, and before that next to the manifest. If its own name does "
          + "not exist, Keyhaul looks for it in capitals and in the other place. If several such files exist, none is read.",
        "A payload that is found is not lost. Programs that look only for its own name do not find it.",
        "Make a copy with convert, which gives each payload its own name.")
    case .listDamaged:
      of(
        kind, "part of the manifest is damaged or cut off",
        "Keyhaul checks the pages of Manifest.db. If a page fails, Keyhaul tries each row separately.",
        "Files with readable rows can be read. The others are counted if anything lists them. A restore and a change "
          + "of the password are refused (exit code 13).",
        "Use another copy of the backup; export --files writes what is left.")
    case .listUnreadable:
      of(
        kind, "no part of the manifest can be read",
        "Manifest.db, and Manifest.mbdb in old backups, say which stored file is which; the keychain is one of them.",
        "No file and no item can be read. A restore is refused (exit code 13).", anotherCopy)
    default: nil
    }
  }

  private static func ofKeychain(_ kind: ArchiveFinding.Kind) -> Explanation? {
    switch kind {
    case .keychainMissing:
      of(
        kind, "the keychain file is listed but not stored", inOneFile,
        "No item can be read, but the other files can. plan, restore, diff and an export of items refuse the backup "
          + "(exit code 13).",
        "Use another copy of the backup; export --files writes its files.")
    case .keychainDamaged:
      of(
        kind, "the keychain file cannot be read", inOneFile,
        "No item can be read, but the other files can. plan, restore, diff and an export of items refuse the backup "
          + "(exit code 13).",
        "Use another copy of the backup; export --files writes its files.")
    case .keychainInXML:
      of(
        kind, "the keychain file is an XML property list", "Devices write the binary format.",
        "Nothing is lost: each item can be decrypted as it was written. A program, not a device, wrote the file.",
        "Nothing needs to be done.")
    case .keychainKeysUnknown:
      of(
        kind, "the keychain file has keys that do not name a kind of item",
        "It contains a list for each kind of item: passwords, certificates, keys.",
        "Every item of a known kind is read. The values of the other keys are ignored.",
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

extension Explanation {
  /// Every page there is.
  static let all = fates + terms + ways + vocabulary + classes + findings + faults + exitCodes

  /// The page on a terminal.
  func lines(style: TextStyle) -> [String] {
    let heading = code.map { "\(id) (exit code \($0))" } ?? id
    var lines = WordWrap.lines(of: style.adapted("\(heading) — \(headline)"), columns: style.width)
    if let first = lines.first { lines[0] = style.painted(first, .bold) }
    let parts =
      [("Rule", rule), ("Effect", effect), ("Do", action)] + (otherWays.map { [("Ways", $0)] } ?? [])
      + (source.map { [("Source", $0)] } ?? [])
    for (label, text) in parts {
      lines += WordWrap.labeled(
        "  " + DisplayWidth.padded(label, columns: 8) + " ", style.adapted(text), columns: style.width)
    }
    return lines
  }
}
