import KeyhaulKit
import Reports

extension Explanation {
  /// The pages of the RESULT column's words, except those of exit codes, in the order of the enumeration.
  static let results = BackupResult.allCases.compactMap(\.explanation)
}

extension BackupResult {
  /// The page of the word; `nil` if the word belongs to an exit code, which has its own page.
  var explanation: Explanation? {
    switch self {
    case .whole:
      page(
        "verify: every check was made, and no fault was found",
        rule:
          "Each file has the digest that the manifest or the seal records. Each item was decrypted, except items that need "
          + "a device key that was not given.",
        effect: "The files are what was written. Items that need a device key were not decrypted.",
        action:
          "If items need a device key, they were not checked: keep another copy, or pass the key with --device-key-file. "
          + "Otherwise nothing.")
    case .unproven:
      page(
        "verify: no fault was found, but a change in some files could not be seen",
        rule:
          "The manifest has no digest of some files, or a check could not be made. As a value of device_key, the word "
          + "says that no item shows whether the given key is right.",
        effect:
          "Nothing indicates damage, but nothing proves that the copy is unchanged. This is usual for backups of real "
          + "devices.",
        action: "Seal the backup, so that later changes can be detected.")
    case .foreign:
      page(
        "verify: no fault was found, but every item needs its device's key",
        rule:
          "The keys of these items are wrapped with a device key that was not given. As a value of device_key, the "
          + "word says that the given key decrypts none of the items.",
        effect: "None of the items could be checked. The files were. The word says nothing about whose backup it is.",
        action: "If you have the device key, pass it with --device-key-file.")
    case .consistent:
      page(
        "verify: a keychain database was checked, and nothing in it contradicts itself",
        rule: "The pages, indexes and log of the database are readable, and each row matches its decrypted item.",
        effect: "Nothing in a database shows who wrote it, or which rows were removed.",
        action: "Nothing.")
    case .incomplete:
      page(
        "verify: listed files are not stored, and no other fault was found",
        rule: "The manifest lists files whose bytes are not in this copy. The keychain is there.",
        effect: "The missing files are lost in this copy. The others are affected only if the report says so.",
        action: "Use another copy for these files. Missing files are typical of an interrupted copy.")
    case .unconfirmed:
      page(
        "verify: nothing says whether the device finished the backup",
        rule: "Status.plist is missing, or has no entry for it.",
        effect: "Files that the device did not write would not be missed.",
        action: "Compare it with another copy.")
    case .otherDeviceKey:
      page(
        "verify: the given device key does not decrypt all items that need one",
        rule:
          "The items of this-device-only classes need the key of their source device. The given key decrypts "
          + "none of them, or only some. Everything else was checked without a fault.",
        effect: "The key is probably that of another device, or the backup contains items of several devices.",
        action: "Check which device the key is from.")
    case .noSeal:
      page(
        "verify --sealed: the backup has no seal, and no fault was found",
        rule: "A seal lists the SHA-256 of every file. With --sealed, a backup without one is not accepted.",
        effect: "A removed seal would look the same.",
        action: "Compare the backup with a sealed copy, or seal it now.")
    case .counted:
      page(
        "inspect: the keychain was read, and its items were counted",
        rule: "Counting needs the keys of the keychain file, not those of each item. inspect checks no digests.",
        effect: "The number of items is known. The word does not say that they are undamaged.",
        action: "Check the backup with \"\(SuggestedCommands.verify("ARCHIVE"))\".")
    case .notCounted:
      page(
        "inspect: the items were not counted, because the keychain file is encrypted",
        rule: "In a backup with a password, the keychain file is encrypted. No password was used.",
        effect: "The number of items is not known.",
        action: "Pass the password, for example with --password-file.")
    case .noKeychain:
      page(
        "inspect: there is no keychain in the backup",
        rule: "The manifest lists no keychain file, or no keychain file is stored.",
        effect: "The backup contains no item that could be restored. Its other files may be there.",
        action: "If it should have one, use another copy.")
    case .planned:
      page(
        "plan: the plan was made",
        rule: "The MOVE column shows how many items move, and how many there are.",
        effect: "Items that a rule leaves behind are not an error.",
        action: "Make a plan of this backup alone to see the reasons.")
    case .asExpected:
      page(
        "plan --expect: every expectation that was checked is met",
        rule: "Each entry of the list names an item and its expected result.",
        effect: "The plan is as expected.",
        action: "Nothing.")
    case .ok, .failed, .differs, .partial, .noMatch, .doneBut, .notFound, .busy, .wrongPassword, .needsPassword,
      .damaged, .refused, .locked, .stalePlan, .usage:
      nil
    }
  }

  private func page(_ headline: String, rule: String, effect: String, action: String) -> Explanation {
    Explanation(
      id: rawValue, headline: headline, rule: rule, effect: "\(effect) Exit code \(code).", action: action,
      source: "Keyhaul, docs/Scripting.md")
  }
}
