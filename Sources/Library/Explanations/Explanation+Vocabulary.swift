extension Explanation {
  /// The pages about terms in labels, column titles and sentences of reports.
  package static let vocabulary = [
    Explanation(
      id: BackupBlindSpots.topic, headline: "items that never enter a backup, so no report on a backup can count them",
      rule: BackupBlindSpots.sentence,
      effect: "Even if every item of a backup moves, these items do not. A report on the device itself lists them.",
      action: BackupBlindSpots.guidance,
      source: "Apple securityd, SecItemDb.c (SecServerCopyKeychainPlist, s3dl_export_row)"),
    PublishedStep.backupPassword, PublishedStep.newPhone,
    Explanation(
      id: "source-device", headline: "the device that made the backup, or whose keychain is reported",
      rule: "Info.plist names the source device of a backup, but only the device key proves it.",
      effect: "Only the source device can restore this-device-only items, or any item of a backup without a password.",
      action: "Keep the source device until the target device works."),
    Explanation(
      id: "target-device", headline: "the device that a backup is restored to",
      rule: "A plan compares each item of the backup with the items on the target device.",
      effect: "An item of the target can be replaced, removed or kept.",
      action: "Run plan before restore to see what changes on the target device."),
    Explanation(
      id: "migratable", headline: "an item whose class allows it to move to another device",
      rule: "The classes ak, ck and dk are migratable: their keys need the backup's password, but no device key.",
      effect: "If the backup has a password, the item moves to any device.",
      action: "Make a backup with a password.",
      source: "Apple Platform Security, \"Keybags for Data Protection\""),
    Explanation(
      id: "this-device-only", headline: "an item whose class ties it to its device",
      rule: "The keys of the classes aku, cku and dku also need the source device's key. Items of the class "
        + "akpu are never in a backup.",
      effect: "The item can be restored only to its source device.", action: "Sign in again on a new device.",
      source: "Apple Platform Security, \"Keybags for Data Protection\""),
    Explanation(
      id: "protection-class", headline: "when an item can be read, and whether it can leave its device",
      rule: "Each item has one of seven classes, and each class has its own key. "
        + "Apple's name for it is the item's accessibility.",
      effect: "The class and the backup's password decide whether the item moves.",
      action: "Look up the class, for example with \"\(SuggestedCommands.explaining("cku"))\".",
      source: "Apple Platform Security, \"Keychain data protection\""),
    Explanation(
      id: "passcode-class", headline: "the protection class of items that exist only while a passcode is set",
      rule: "Items of the class akpu are never in a backup. Removing the passcode deletes them.",
      effect: "They never move to another device.", action: "Look up \"\(SuggestedCommands.explaining("akpu"))\".",
      source: "Apple, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly"),
    Explanation(
      id: "access-group", headline: "the group of apps that can use an item",
      rule: "An item belongs to one access group (agrp). An app can use an item if its entitlements name the group.",
      effect: "Reports derive the app from the group. If the group is not an app's own, they show the group instead.",
      action: "Select items by group with --access-group.",
      source: "Apple, \"Sharing access to keychain items among a collection of apps\""),
    Explanation(
      id: "access-control", headline: "a condition that the user must meet before an item can be read",
      rule: "An item can require biometry, the passcode or an application password.",
      effect: "Such an item is never in a backup.",
      action: "Look up the reason with \"\(SuggestedCommands.explaining("needs-authentication"))\".",
      source: "Apple, SecAccessControlCreateWithFlags"),
    Explanation(
      id: "primary-key", headline: "the attributes that make an item unique",
      rule: "A password is identified by its account, its service or server, its access group, and a few more "
        + "attributes. A keychain has at most one item per primary key.",
      effect: "If the target has an item with the same primary key, a restore replaces it, keeps it or skips it.",
      action:
        "Look up \"\(SuggestedCommands.explaining("replaces"))\" and \"\(SuggestedCommands.explaining("keeps-existing"))\".",
      source: "Apple securityd, SecDbItem.c"),
    Explanation(
      id: "keybag", headline: "the part of a backup that contains its class keys, wrapped",
      rule: "The keybag is in Manifest.plist. It has a wrapped key for each protection class, a salt and "
        + "iteration counts.",
      effect: "Without the keybag no item can be decrypted.",
      action: "Show it with \"inspect --keybag\".",
      source: "Apple Platform Security, \"Keybags for Data Protection\""),
    Explanation(
      id: "class-key", headline: "the key of a protection class, which decrypts the keys of its items and files",
      rule: "In a backup, class keys are wrapped with the password, with the source device's key, or both.",
      effect: "An item can be decrypted only if the key of its class can be unwrapped.",
      action: "Show how each class key is wrapped with \"inspect --keybag\".",
      source: "Apple Platform Security, \"Keybags for Data Protection\"; RFC 3394"),
    Explanation(
      id: "device-key", headline: "the key that binds items to their device (0x835)",
      rule: "The device derives it from a key in its hardware. The keys of this-device-only classes are wrapped with "
        + "it.",
      effect: "Anyone who has it, and the backup's password if there is one, can decrypt a backup's this-device-only "
        + "items.",
      action: "If you have it, pass it with --device-key-file. Keyhaul finds a virtual device's key in the device "
        + "folder."),
    Explanation(
      id: "iterations", headline: "how many times the key derivation is repeated to make guessing a password slow",
      rule:
        "PBKDF2 derives the password key. A device uses 10,000,000 SHA-256 iterations, then 10,000 SHA-1 iterations.",
      effect: "More iterations make each attempt slower, for the owner and for an attacker.",
      action: "Set the number with --rounds when you make or rekey a backup."),
    Explanation(
      id: "encrypted-item", headline: "an item whose name and secret cannot be decrypted with the keys available",
      rule: "Every item in a backup is encrypted, including its name. Reports call an item encrypted if no available "
        + "key decrypts it.",
      effect: "The report shows the item's number, kind and class, but not its name.",
      action: "Pass the backup's password, or the source device's key with --device-key-file."),
    Explanation(
      id: "manifest", headline: "the list of a backup's files: Manifest.db, or Manifest.mbdb up to iOS 9",
      rule: "The manifest maps each domain and path to a stored file. Manifest.plist is a different file: "
        + "it contains the keybag.",
      effect: "A file that the manifest does not list cannot be restored.",
      action: "Show its domains and folders with \"inspect --tree\"."),
    Explanation(
      id: "domain", headline: "the part of the file system that a file in a backup comes from",
      rule: "A path in a backup is relative to its domain, such as HomeDomain or AppDomain-com.example.app.",
      effect: "The domain and the path together identify a file.",
      action: "Export a file with --domain and --path."),
    Explanation(
      id: "digest", headline: "a hash that shows whether data has changed",
      rule: "A manifest may record the digest of a stored file. A seal records the SHA-256 of every file. A plan "
        + "identifies its backup by a digest.",
      effect: "If no digest of a file is recorded, a change in it may go unnoticed.",
      action: "Check the digests with \"\(SuggestedCommands.verify("ARCHIVE"))\"."),
    Explanation(
      id: "seal", headline: "Keyhaul.seal, the file that makes later changes to a backup detectable",
      rule:
        "The seal lists the SHA-256 of every file. In a backup with a password, it can be made only with the password.",
      effect: "Keyhaul does not restore a backup with a broken seal. Without a password, a seal detects accidents, "
        + "not attacks.",
      action: "Seal a backup to detect later changes.", source: "Keyhaul, docs/Format.md"),
    Explanation(
      id: "tombstone", headline: "the record of a deleted item that used to sync",
      rule: "A tombstone (tomb) tells other devices to delete the item. It is not an item and has no secret.",
      effect: "A backup has tombstones only if the device syncs. Reports ignore them.",
      action: "Nothing.", source: "Apple securityd, SecItemDb.c"),
    Explanation(
      id: "synchronized", headline: "an item that iCloud Keychain syncs between devices",
      rule: "The item is flagged with sync. The flag is part of its primary key.",
      effect: "While iCloud Keychain is turned on, it copies the item to the user's other devices. A replacing "
        + "restore does not remove it.",
      action: "Look up \"\(SuggestedCommands.explaining("ways"))\".", source: "Apple, kSecAttrSynchronizable"),
    Explanation(
      id: "persistent-reference", headline: "the reference that an app stores to find an item later",
      rule: "A persistent reference contains the item's class and an identifier.",
      effect: "If the source device is available, Keyhaul uses these references to recognize which of its items are "
        + "in a backup.",
      action: "Nothing.", source: "Apple, kSecValuePersistentRef"),
    Explanation(
      id: "forecast", headline: "what a restore would do, without a target device",
      rule:
        "A plan without a target assumes two empty devices with a passcode: a new device, and the source device after "
        + "it was erased.",
      effect: "If the key for an item is not available, the forecast uses the item's class, and the report says so.",
      action: "Plan for an existing device."),
    Explanation(
      id: "revision", headline: "the number of a virtual device's state",
      rule: "Every change to a virtual device gives it a new revision.",
      effect: "Keyhaul refuses a saved plan if the target device's revision has changed.",
      action: "If that happens, plan again."),
    Explanation(
      id: "dump", headline: "a keychain as another tool wrote it",
      rule: "A dump has no keybag and no files, and nothing protects its items.",
      effect: "It does not show who wrote it or whether it is complete.",
      action: "Use a backup if you have one."),
    Explanation(
      id: "intact", headline: "verify found no damage, and every file is proven unchanged",
      rule: "A digest or a seal proves that a file is unchanged. verify lists the items that it could not check. As a "
        + "value of seal, the word says that every file matches the seal.",
      effect: "Otherwise verify says only that it found no damage, and what it could not check.",
      action: "Seal a backup so that later changes can be detected."),
    Explanation(
      id: "proven", headline: "a value of device_key: the given device key is right",
      rule: "The key decrypts items of every protection class that needs a device key.",
      effect: "The key is that of the source device of these items.", action: "Nothing."),
    Explanation(
      id: "divided", headline: "a value of device_key: the given device key decrypts only some of the items",
      rule: "The key decrypts items of some protection classes that need a device key, and no item of others.",
      effect: "The other items may be damaged, or come from another device. verify exits with 3.",
      action: "Compare the backup with another copy."),
    Explanation(
      id: "broken", headline: "a value of seal: the backup differs from what was sealed",
      rule: "A file does not match the seal, is missing or was added, or the seal itself was changed.",
      effect: "verify lists the files and exits with 13, or with 3 if files are only missing.",
      action: "Use another copy of the backup."),
    Explanation(
      id: "missing", headline: "a value of seal: the backup has no seal",
      rule: "A seal is optional. Someone who changes a backup can remove its seal.",
      effect: "Only digests in the manifest show changes in files. With --sealed, verify exits with 3.",
      action: "Seal the backup, so that later changes can be detected."),
    Explanation(
      id: "unchecked", headline: "a value of seal: the backup has a seal that was not compared with every file",
      rule: "In a backup with a password, the seal needs the password. The files of a stream cannot be compared.",
      effect: "It is not known whether the backup is still what was sealed.",
      action: "Verify the backup with its password, from a folder or file."),
    Explanation(
      id: "finished", headline: "a value of state: the backup says that the device finished it",
      rule: "The device writes this into Status.plist when the backup is complete.",
      effect: "The word is the backup's own statement. It does not say that the files are still there.",
      action: "Check the backup with \"\(SuggestedCommands.verify("ARCHIVE"))\"."),
  ]
}
