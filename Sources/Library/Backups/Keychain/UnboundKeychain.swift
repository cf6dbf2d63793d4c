package import Basics
import KeychainCrypto
package import KeychainFormats
package import KeychainRules

/// Class keys of a backup's keychain that are not bound to the device that made it, though every device binds them.
package struct UnboundKeychain: Sendable, Hashable {
  /// In ascending order; never empty.
  package let classes: [KeyClass]
  /// Whether the keys are behind a password at least.
  package let backupHasPassword: Bool

  /// Looks for class keys without the hardware's layer.
  ///
  /// - Returns: `nil` if every class key that is there has the layers that a device gives it.
  package init?(of keybag: Keybag, backupHasPassword: Bool) {
    classes = BackupKeybag.classesWithoutHardware(of: keybag, hasPassword: backupHasPassword)
    guard !classes.isEmpty else { return nil }
    self.backupHasPassword = backupHasPassword
  }

  /// Whether nothing of the backup may be restored. Without a password the keys of such a keychain are open to everybody:
  /// whoever can replace a backup can write one. With a password nobody without it can have made it so.
  package var isRefused: Bool { !backupHasPassword }

  /// Whether the key of a class is among them.
  package func contains(_ protection: ProtectionClass?) -> Bool {
    protection.map { classes.contains($0.keyClass) } ?? false
  }

  /// What was found: "the keys of classes 6, 7 and 8 in its keybag …".
  package var fact: String {
    let names = HumanReadable.list(classes.map { String($0.rawValue) })
    return fact(of: classes.count == 1 ? "the key of class \(names)" : "the keys of classes \(names)")
  }

  /// The same with what the classes are: "the keys of classes 6 (when unlocked) and 7 (after first unlock) in its …".
  package var factInWords: String {
    let names = HumanReadable.list(classes.map(\.words))
    return fact(of: classes.count == 1 ? "the key of class \(names)" : "the keys of classes \(names)")
  }

  private func fact(of keys: String) -> String {
    "\(keys) in its keybag \(classes.count == 1 ? "is" : "are") not wrapped with a device's hardware key, although "
      + "every device does this" + (backupHasPassword ? "" : " in a backup without a password")
  }

  /// What that means for the items of these classes.
  package var meaning: String {
    backupHasPassword
      ? "with the password, their this-device-only items can be decrypted on any device"
      : "their items can be decrypted without any device's hardware key; the backup has no password, according to "
        + "Manifest.plist, so anyone can decrypt them, and anyone could have written them"
  }
}

extension BackupArchive {
  /// What of its keychain's keys no device leaves so; `nil` if there is nothing of it.
  package var unboundKeychain: UnboundKeychain? {
    UnboundKeychain(of: keybag, backupHasPassword: keybagHasPassword)
  }

  /// Refuses what a use does not take: of a plan and a restore a backup that its device never finished, and one without
  /// a password whose keychain is open to everybody; of every use what a finding forbids.
  ///
  /// - Throws: Category `damaged` for the first, `refused` for the second.
  package func requireFit(for use: ArchiveUse) throws(KeyhaulError) {
    try require(use)
    switch use {
    case .reading, .exporting, .rewriting, .copying: return
    case .planning, .restoring:
      if let unbound = unboundKeychain, unbound.isRefused { throw KeyhaulError(unbound) }
    }
  }

  /// Refuses what no restore takes.
  ///
  /// - Throws: As `requireFit(for:)`.
  package func requireRestorable() throws(KeyhaulError) { try requireFit(for: .restoring) }
}

extension KeyhaulError {
  /// What refuses a backup whose keychain no hardware binds.
  package init(_ unbound: UnboundKeychain) {
    self.init(.unboundKeychain, "\(unbound.fact): \(unbound.meaning)")
  }
}

/// The items of an archive that do not open, counted by as much as they say of themselves.
package struct SealedItems {
  /// Items of one kind and class that stay shut for one reason.
  package struct Group: Hashable, Sendable {
    package let kind: ItemKind
    /// `nil` if their blobs name no known class.
    package let protection: ProtectionClass?
    package let reason: Reason
    /// How many they are.
    package internal(set) var count = 0
  }

  /// In the order in which the archive has the first item of each.
  package let groups: [Group]

  /// Counts the items of an archive; of one that was not opened there are none.
  package init(_ opened: OpenedArchive?) {
    var groups: [Group] = []
    var places: [Group: Int] = [:]
    for item in opened?.items ?? [] {
      guard let reason = opened?.reason(of: item) else { continue }
      let key = Group(kind: item.kind, protection: item.protection, reason: reason)
      let place = places[key] ?? groups.count
      if place == groups.count {
        places[key] = place
        groups.append(key)
      }
      groups[place].count += 1
    }
    self.groups = groups
  }
}
