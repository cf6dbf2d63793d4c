package import KeychainFormats

/// A rule that excludes an item from a restore although it can be decrypted.
package struct RestoreExclusion: Sendable {
  /// The reason for the exclusion.
  package let reason: Reason
  /// Returns whether the rule excludes an item.
  let excludes: @Sendable (KeychainItem, RestoreContext) -> Bool
}

/// The conditions of a restore, apart from the backup's items and the target's rows.
package struct RestoreContext: Sendable, Hashable {
  /// Whether the target takes part in synchronization. If it does, tombstones have an effect there.
  package var targetSyncs: Bool
  /// Whether the target is a Shared iPad, which has more system-bound items.
  package var isSharedIPad: Bool
  /// Whether the backup has a password. It affects only the reason given for a missing device key, never what moves.
  package var backupHasPassword: Bool

  /// The context that excludes the most items. An item that it does not exclude arrives in every other context too.
  package static let strictest = RestoreContext(targetSyncs: false, isSharedIPad: true)

  /// Creates a context; by default for a device that does not sync and a backup without a password.
  package init(targetSyncs: Bool = false, isSharedIPad: Bool = false, backupHasPassword: Bool = false) {
    self.targetSyncs = targetSyncs
    self.isSharedIPad = isSharedIPad
    self.backupHasPassword = backupHasPassword
  }
}

/// The rules that exclude items from a restore.
///
/// Keyhaul's own backups contain none of these items, but other tools' backups may. Source: Apple `SecItemDb.c`
/// (`SecServerImportItem`). Three rules are Keyhaul's own. Items of the passcode class and items with an access control
/// are not restored, because no device writes them to a backup. A tombstone is not restored to a device that does not
/// sync, where it could only hide an item.
package enum RestoreExclusions {
  /// The rules in the order in which they are checked; the first that applies gives the reason.
  package static let all: [RestoreExclusion] = [
    RestoreExclusion(reason: .passcodeOnly) { item, _ in item.protection == .whenPasscodeSetThisDeviceOnly },
    RestoreExclusion(reason: .hardwareKey) { item, _ in item.hasToken },
    RestoreExclusion(reason: .sharedGroup) { item, _ in item.isSharedCopy },
    RestoreExclusion(reason: .systemBound) { item, context in
      SystemBoundItems.contains(item, isSharedIPad: context.isSharedIPad)
    },
    RestoreExclusion(reason: .needsAuthentication) { item, _ in item[.accessControl] != nil },
    RestoreExclusion(reason: .deleted) { item, context in item.isTombstone && !context.targetSyncs },
  ]

  /// Returns the reason to exclude an item, or `nil` if it is restored.
  package static func exclusionReason(for item: KeychainItem, in context: RestoreContext) -> Reason? {
    all.first { $0.excludes(item, context) }?.reason
  }
}
