package import Basics
import KeychainCrypto
package import KeychainFormats

/// The class keys of a backup that are not bound to the source device although they should be.
package struct UnboundClassKeys: Sendable, Hashable {
  /// The classes in ascending order, at least one.
  package let classes: [KeyClass]
  /// Whether a password protects the keys.
  package let backupHasPassword: Bool

  /// Finds the class keys without a device layer, or returns `nil` if there are none.
  package init?(of keybag: Keybag, backupHasPassword: Bool) {
    classes = BackupKeybag.classesWithoutDeviceWrap(in: keybag, hasPassword: backupHasPassword)
    guard !classes.isEmpty else { return nil }
    self.backupHasPassword = backupHasPassword
  }

  /// Whether nothing of the backup may be restored. Without a password, anyone who can replace the backup could have
  /// created these keys; with one, only someone who knows it.
  package var isRefused: Bool { !backupHasPassword }

  /// Whether the key of a class is affected.
  package func contains(_ protection: ProtectionClass?) -> Bool {
    protection.map { classes.contains($0.keyClass) } ?? false
  }

  /// The fact: "the keys of classes 6, 7 and 8 in its keybag …".
  package var fact: String {
    let names = HumanReadable.list(classes.map { String($0.rawValue) })
    return fact(of: classes.count == 1 ? "the key of class \(names)" : "the keys of classes \(names)")
  }

  /// The fact with descriptions: "the keys of classes 6 (when unlocked) and 7 (after first unlock) in its …".
  package var describedFact: String {
    let names = HumanReadable.list(classes.map(\.displayName))
    return fact(of: classes.count == 1 ? "the key of class \(names)" : "the keys of classes \(names)")
  }

  private func fact(of keys: String) -> String {
    "\(keys) in its keybag \(classes.count == 1 ? "is" : "are") not wrapped with a device's hardware key, although "
      + "every device does this" + (backupHasPassword ? "" : " in a backup without a password")
  }

  /// The consequence for the items of these classes.
  package var meaning: String {
    backupHasPassword
      ? "with the password, their this-device-only items can be decrypted on any device"
      : "their items can be decrypted without any device's hardware key; the backup has no password, according to "
        + "Manifest.plist, so anyone can decrypt them, and anyone could have written them"
  }
}

extension BackupArchive {
  /// The class keys that are not bound to the device, or `nil` if there are none.
  package var unboundClassKeys: UnboundClassKeys? {
    UnboundClassKeys(of: keybag, backupHasPassword: keybagHasPassword)
  }

  /// Checks that the backup can be used for a purpose: a plan or a restore requires a finished backup with a password
  /// or a device-bound keychain, and findings can forbid any use.
  ///
  /// - Throws: An error of category `damaged` if the backup is unfinished, or `refused` if its keychain is unprotected.
  package func requireUsableClassKeys(for use: BackupPurpose) throws(KeyhaulError) {
    try require(use)
    switch use {
    case .reading, .exporting, .rewriting, .copying: return
    case .planning, .restoring:
      if let unbound = unboundClassKeys, unbound.isRefused { throw KeyhaulError(unbound) }
    }
  }

  /// Checks that the backup can be restored.
  ///
  /// - Throws: The errors of `requireUsableClassKeys(for:)`.
  package func requireRestorable() throws(KeyhaulError) { try requireUsableClassKeys(for: .restoring) }
}

extension KeyhaulError {
  /// Creates the error for a keychain that is not bound to a device.
  package init(_ unbound: UnboundClassKeys) {
    self.init(.unboundKeychain, "\(unbound.fact): \(unbound.meaning)")
  }
}
