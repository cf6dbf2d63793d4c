package import Basics
import KeychainCrypto
package import KeychainFormats

/// The class keys of a backup that are not wrapped with the device key although every device wraps them with it.
package struct UnboundClassKeys: Sendable, Hashable {
  /// The classes of these keys in ascending order, at least one.
  package let classes: [KeyClass]
  /// Whether a password protects the keys.
  package let backupHasPassword: Bool

  /// Finds the class keys that are not wrapped with the device key, or returns `nil` if there are none.
  package init?(of keybag: Keybag, backupHasPassword: Bool) {
    classes = BackupKeybag.classesWithoutDeviceWrap(in: keybag, hasPassword: backupHasPassword)
    guard !classes.isEmpty else { return nil }
    self.backupHasPassword = backupHasPassword
  }

  /// Whether the backup must not be restored. Without a password, anyone who can replace the backup could have
  /// created these keys. With a password, only someone who knows the password could have.
  package var blocksRestore: Bool { !backupHasPassword }

  /// Returns whether the key of a protection class is among these keys.
  package func contains(_ protection: ProtectionClass?) -> Bool {
    protection.map { classes.contains($0.keyClass) } ?? false
  }

  /// A summary: "the keys of classes 6, 7 and 8 in its keybag …".
  package var summary: String {
    let names = HumanReadable.list(classes.map { String($0.rawValue) })
    return summary(of: classes.count == 1 ? "the key of class \(names)" : "the keys of classes \(names)")
  }

  /// The summary with the meaning of each class: "the keys of classes 6 (when unlocked) and 7 (after first unlock) in
  /// its …".
  package var detailedSummary: String {
    let names = HumanReadable.list(classes.map(\.displayName))
    return summary(of: classes.count == 1 ? "the key of class \(names)" : "the keys of classes \(names)")
  }

  private func summary(of keys: String) -> String {
    "\(keys) in its keybag \(classes.count == 1 ? "is" : "are") not wrapped with a device key, although "
      + "every device does this" + (backupHasPassword ? "" : " in a backup without a password")
  }

  /// The consequence for the items of these classes.
  package var consequence: String {
    backupHasPassword
      ? "with the password, their this-device-only items can be decrypted on any device"
      : "their items can be decrypted without a device key; the backup has no password, according to "
        + "Manifest.plist, so anyone can decrypt them, and anyone could have written them"
  }
}

extension BackupArchive {
  /// The class keys that are not wrapped with the device key, or `nil` if there are none.
  package var unboundClassKeys: UnboundClassKeys? {
    UnboundClassKeys(of: keybag, backupHasPassword: keybagHasPassword)
  }
}

extension KeyhaulError {
  /// Creates the error for class keys that are not wrapped with the device key.
  package init(_ unbound: UnboundClassKeys) {
    self.init(.unboundKeychain, "\(unbound.summary): \(unbound.consequence)")
  }
}
