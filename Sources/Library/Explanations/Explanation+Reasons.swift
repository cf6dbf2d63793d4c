public import KeyhaulKit

extension Reason {
  /// The explanation of the reason. It names the sources of the rules.
  public var explanation: Explanation {
    switch self {
    case .deviceBound:
      Explanation(
        id: rawValue, headline: "the item stays on the source device",
        rule: "The class keys of this-device-only items are wrapped twice in a backup: first with a key derived from "
          + "the device's hardware UID, then with the key from the password.",
        effect: "The item can be restored to the same device. Any other device skips it silently. If the item is the "
          + "key to an app's encrypted database, the database may move, but cannot be decrypted there.",
        action: "Sign in again on the new device. If the item is the key to an app's data, export that data in the "
          + "app first. Developers: if the item should move, choose a protection class without \"this device only\".",
        otherWays: Self.noOtherWay,
        source: "Apple Platform Security, \"Keybags for Data Protection\"; securityd, SecItemDb.c (import skips what "
          + "does not decrypt)")
    case .backupNotEncrypted:
      Explanation(
        id: rawValue, headline: "the backup has no password, so only the source device can decrypt its keychain",
        rule: "Without a backup password, every keychain key in the backup is wrapped with the source device's key.",
        effect: "No keychain item moves to another device. All of them can be restored to the same device.",
        action: "Make a new backup of the source device with a password, and restore that backup.",
        otherWays:
          "A backup with a password. Also a direct transfer (Quick Start) if the item does not sync, or iCloud Keychain "
          + "if it does.",
        source: "Apple Platform Security, \"Keybags for Data Protection\" (backup keybag)")
    case .passcodeOnly:
      Explanation(
        id: rawValue, headline: "the item never leaves its device",
        rule: "Items that need a passcode (\"when passcode set, this device only\") are never backed up.",
        effect:
          "A restore, or removing the passcode, deletes them, even on the same device.",
        action: "Before you erase the device, open the app and export or move whatever this item protects.",
        otherWays: Self.noOtherWay,
        absentItems: "passcode-only items",
        source: "Apple, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly; SecItemDb.c, s3dl_export_row")
    case .hardwareKey:
      Explanation(
        id: rawValue, headline: "the key works only with its chip or smart card",
        rule: "An item that names a token (tkid) needs that token. A Secure Enclave key (com.apple.setoken) is in the "
          + "keychain, wrapped so that only that device's chip can use it. The key of a smart card or another "
          + "CryptoTokenKit token is on the token; the keychain only refers to it.",
        effect: "The item is never in a backup. Without its token, it cannot be used.",
        action:
          "For a key of the Secure Enclave, make a new one on the new device and register it again. The keys of a "
          + "smart card are on the card.",
        otherWays: Self.iCloudKeychainIfSynchronizable,
        absentItems: "keys of a token",
        source:
          "Apple, kSecAttrTokenID, and CryptoTokenKit, \"Using Cryptographic Assets Stored on a Smart Card\"; DTS, "
          + "Developer Forums thread 786223; SecItemDb.c, s3dl_export_row")
    case .systemBound:
      Explanation(
        id: rawValue, headline: "it is one of iOS's own items; each device has its own",
        rule:
          "iOS never backs up or restores its own items. They are listed in a fixed table, or flagged with sysb.",
        effect: "They are never in a backup. The target keeps its own.",
        action: "Nothing.",
        otherWays: Self.iCloudKeychainIfSynchronizable,
        absentItems: "the system's own items",
        source: "SecItemDb.c, SecItemIsSystemBound")
    case .needsAuthentication:
      Explanation(
        id: rawValue, headline: "the item can be decrypted only after the user authenticates on the device",
        rule: "A backup cannot include items that can be read only with Face ID, Touch ID, the user's presence or an "
          + "application password.",
        effect: "They are never in a backup, and stay on the source device.",
        action: "Before you erase the source device, transfer them in the app that made them. For one-time passwords, "
          + "use the app's own export.",
        otherWays: Self.iCloudKeychainIfSynchronizable,
        absentItems: "items that require authentication",
        source: "SecItemDb.c, s3dl_export_row; Apple, SecAccessControlCreateWithFlags")
    case .sharedGroup:
      Explanation(
        id: rawValue, headline: "the item belongs to a shared group",
        rule: "iOS does not back up copies of items that a group shares. The group provides them.",
        effect: "They return when the account joins the group again.",
        action: "Sign in with the account that is in the group.",
        otherWays: "The group. Whether a direct transfer moves such an item is not known.",
        absentItems: "copies of shared groups",
        source: "SecItemDb.c, SecItemIsSystemBound (kSecAttrSharingGroup)")
    case .appClip:
      Explanation(
        id: rawValue, headline: "the item belongs to an App Clip",
        rule: "iOS does not back up items of App Clips.",
        effect:
          "They are never in a backup. On the same device, the full app can read the items that its App Clip stored, "
          + "once it has replaced the App Clip.",
        action: "Before you erase the device, install the full app on it and let the app read the items.",
        otherWays: Self.iCloudKeychainIfSynchronizable,
        absentItems: "items of App Clips",
        source:
          "SecItemDb.c, SecServerCopyKeychainPlist (clip = 0); Apple, \"Sharing data between your App Clip and your "
          + "full app\"")
    case .deleted:
      Explanation(
        id: rawValue, headline: "the item was deleted",
        rule: "A deleted item that synced leaves a tombstone. Tombstones are sent only between devices that sync.",
        effect: "Nothing is lost: the item was already gone.",
        action: "Nothing.",
        otherWays: "None. The item no longer exists.",
        source: "SecItemDb.c, SecServerCopyKeychainPlist (tomb = 0 while syncing is off)")
    case .noClassKey:
      Explanation(
        id: rawValue, headline: "the key of the item's class is missing or damaged",
        rule: "Each item is encrypted with the key of its protection class, which the keybag contains.",
        effect: "Every item of that class is lost in this copy. The other items are not affected.",
        action: "Look for another copy of the backup.",
        otherWays: Self.unknownWays,
        source: "Apple Platform Security, \"Keybags for Data Protection\"")
    case .tagMismatch:
      Explanation(
        id: rawValue, headline: "the item's bytes were changed",
        rule: "Each item carries an authentication tag over its bytes.",
        effect: "Only this item is lost in this copy. The other items are not affected.",
        action: "Look for another copy of the backup.",
        otherWays: Self.unknownWays,
        source: "NIST SP 800-38D; SecDbKeychainItem.m")
    case .malformed:
      Explanation(
        id: rawValue, headline: "the item is malformed",
        rule: "An item is a dictionary whose protection class equals the class it was encrypted for.",
        effect: "Only this item is lost in this copy. The other items are not affected.",
        action: "Look for another copy of the backup.",
        otherWays: Self.unknownWays,
        source: "SecDbKeychainItem.m; SecItemDb.c, SecServerImportItem")
    case .unsupportedVersion:
      Explanation(
        id: rawValue, headline: "the item uses a version that cannot be restored",
        rule:
          "Version 2 and 3 items can be restored. Items from iOS 4 (version 0) contain only a secret, without a "
          + "name. Other versions are used in a device's own database.",
        effect: "Only this item stays behind.",
        action:
          "Save the secret of a version 0 item with \"\(SuggestedCommands.exportRevealing)\". A newer program may be able to "
          + "read a newer item.",
        otherWays: Self.unknownWays,
        source: "SecDbKeychainItem.m")
    }
  }

  private static let noOtherWay =
    "None. Neither a direct transfer nor iCloud Keychain moves this-device-only items."

  private static let iCloudKeychainIfSynchronizable =
    "iCloud Keychain, if the item is flagged to sync and its class is not this-device-only. Whether a direct "
    + "transfer moves such an item is not known."

  private static let unknownWays =
    "This copy does not show the item's attributes, so Keyhaul cannot say. See "
    + "\"\(SuggestedCommands.explaining("ways"))\"."
}
