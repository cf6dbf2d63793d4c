public import KeyhaulKit

extension Reason {
  /// What the reason means. The sources of the rules are named there.
  public var explanation: Explanation {
    switch self {
    case .deviceBound:
      Explanation(
        id: rawValue, headline: "the item stays on the source device",
        rule: "The keys of items protected \"… this device only\" are wrapped twice in a backup: with a key that the "
          + "device derives from its hardware UID, and with the password's key.",
        effect: "The item can be restored to the same device. Any other device skips it without a message. Data that "
          + "the item is the key of, such as an app's encrypted database, may still move, but cannot be read there.",
        action: "Sign in again on the new device. If the item is the key of an app's data, export that data inside the "
          + "app first. Developers: choose a protection without \"this device only\" if the item should move.",
        otherWays: otherWays,
        source: "Apple Platform Security, \"Keybags for Data Protection\"; securityd, SecItemDb.c (import skips what "
          + "does not decrypt)")
    case .backupNotEncrypted:
      Explanation(
        id: rawValue, headline: "the backup has no password, so its keychain can be decrypted on one device only",
        rule: "Without a backup password every keychain key in the backup is wrapped with the hardware key of the "
          + "source device.",
        effect: "No keychain item arrives on another device. All items in the backup come back on the same device.",
        action: "Make a new backup of the old device with a password, and restore that backup.",
        otherWays: otherWays,
        source: "Apple Platform Security, \"Keybags for Data Protection\" (backup keybag)")
    case .passcodeOnly:
      Explanation(
        id: rawValue, headline: "the item never leaves its device",
        rule: "Items protected \"when passcode set, this device only\" are in no backup of any kind.",
        effect:
          "They are lost after an iOS restore, even on the same device, and when the passcode is removed.",
        action: "Export or move what the item guards inside its app before the device is erased.",
        otherWays: otherWays,
        source: "Apple, kSecAttrAccessibleWhenPasscodeSetThisDeviceOnly; SecItemDb.c, s3dl_export_row")
    case .hardwareKey:
      Explanation(
        id: rawValue, headline: "only the item's token can use its key",
        rule: "An item that names a token (tkid) needs that token. A Secure Enclave key (com.apple.setoken) is in the "
          + "keychain, wrapped so that only that device's chip can use it. The key of a smart card or other "
          + "CryptoTokenKit token is outside, and the keychain contains only a reference.",
        effect: "The item is in no backup. Without its token, it cannot be used.",
        action:
          "For a key of the Secure Enclave, make a new one on the new device and register it again. The keys of a "
          + "smart card are on the card.",
        otherWays: otherWays,
        source:
          "Apple, kSecAttrTokenID, and CryptoTokenKit, \"Using Cryptographic Assets Stored on a Smart Card\"; DTS, "
          + "Developer Forums thread 786223; SecItemDb.c, s3dl_export_row")
    case .systemBound:
      Explanation(
        id: rawValue, headline: "every device keeps its own",
        rule:
          "Items that a fixed table or their own flag (sysb) marks as the system's are neither exported nor imported.",
        effect: "They are in no backup. The target keeps its own.",
        action: "Nothing needs to be done.",
        otherWays: otherWays,
        source: "SecItemDb.c, SecItemIsSystemBound")
    case .needsAuthentication:
      Explanation(
        id: rawValue, headline: "the item can be decrypted only after the user authenticates on the device",
        rule: "Items with an access control (biometry, presence, an application password) cannot be read by a backup.",
        effect: "They are in no backup, and stay on the old device.",
        action: "Move them inside the app that made them (for one-time passwords: its own export) before you erase "
          + "the old device.",
        otherWays: otherWays,
        source: "SecItemDb.c, s3dl_export_row; Apple, SecAccessControlCreateWithFlags")
    case .sharedGroup:
      Explanation(
        id: rawValue, headline: "the item belongs to a shared group",
        rule: "Copies of items that a group shares are not exported. They come from the group.",
        effect: "They come back when the account joins the group again.",
        action: "Sign in with the account that is in the group.",
        otherWays: otherWays,
        source: "SecItemDb.c, SecItemIsSystemBound (kSecAttrSharingGroup)")
    case .appClip:
      Explanation(
        id: rawValue, headline: "the item belongs to an App Clip",
        rule: "Items of App Clips are not exported.",
        effect:
          "They are in no backup. On the same device, the full app can read the items that its App Clip stored, once "
          + "it replaces the App Clip.",
        action: "Install the full app on that device and let it read the items before the device is erased.",
        otherWays: otherWays,
        source:
          "SecItemDb.c, SecServerCopyKeychainPlist (clip = 0); Apple, \"Sharing data between your App Clip and your "
          + "full app\"")
    case .deleted:
      Explanation(
        id: rawValue, headline: "the item was deleted",
        rule: "A deleted synchronized item leaves a tombstone, which is transferred only between devices that sync.",
        effect: "Nothing is lost: the item was already gone.",
        action: "Nothing needs to be done.",
        otherWays: otherWays,
        source: "SecItemDb.c, SecServerCopyKeychainPlist (tomb = 0 while syncing is off)")
    case .noClassKey:
      Explanation(
        id: rawValue, headline: "the key of the item's class is missing or damaged",
        rule: "Each item is encrypted with the key of its protection class, which the keybag contains.",
        effect: "Every item of that class is lost in this copy. The other items are safe.",
        action: "Look for another copy of the backup.",
        otherWays: otherWays,
        source: "Apple Platform Security, \"Keybags for Data Protection\"")
    case .tagMismatch:
      Explanation(
        id: rawValue, headline: "the item's bytes were changed",
        rule: "Each item carries an authentication tag over its bytes.",
        effect: "Only this item is lost in this copy. The other items are safe.",
        action: "Look for another copy of the backup.",
        otherWays: otherWays,
        source: "NIST SP 800-38D; SecDbKeychainItem.m")
    case .malformed:
      Explanation(
        id: rawValue, headline: "the item does not follow its format",
        rule: "An item is a dictionary whose protection class equals the class it was encrypted for.",
        effect: "Only this item is lost in this copy. The other items are safe.",
        action: "Look for another copy of the backup.",
        otherWays: otherWays,
        source: "SecDbKeychainItem.m; SecItemDb.c, SecServerImportItem")
    case .unsupportedVersion:
      Explanation(
        id: rawValue, headline: "the item has a version that cannot be restored",
        rule:
          "Items of versions 2 and 3 can be restored. Items of iOS 4 (version 0) contain only a secret, without a "
          + "name. Other versions belong to a device's own database.",
        effect: "This one item stays behind; the others are safe.",
        action:
          "Save the secret of a version 0 item with \"\(Commands.exportRevealing)\"; a newer program may read a newer item.",
        otherWays: otherWays,
        source: "SecDbKeychainItem.m")
    }
  }
}
