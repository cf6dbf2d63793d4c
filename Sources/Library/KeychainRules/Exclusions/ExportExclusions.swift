package import KeychainFormats

/// A rule that excludes items from a backup.
package struct ExportExclusion: Sendable {
  /// The reason for the exclusion.
  package let reason: Reason
  /// Returns whether the rule excludes an item.
  let excludes: @Sendable (ExportCandidate) -> Bool
}

/// An item as its device stores it, with the flags from its columns that the export rules check.
package struct ExportCandidate: Sendable {
  /// The decrypted item.
  package var item: KeychainItem
  /// Whether the item has an access control with constraints.
  package var isAccessControlled: Bool
  /// Whether an App Clip created the row; only a column records this, never the item.
  package var isAppClip: Bool
  /// Whether the device takes part in synchronization. If it does, its backup includes tombstones.
  package var deviceSyncs: Bool
  /// Whether the device is a Shared iPad, which has more system-bound items.
  package var isSharedIPad: Bool

  /// Creates a candidate; by default an ordinary app's item on a device that does not sync.
  package init(
    item: KeychainItem, isAccessControlled: Bool = false, isAppClip: Bool = false, deviceSyncs: Bool = false,
    isSharedIPad: Bool = false
  ) {
    self.item = item
    self.isAccessControlled = isAccessControlled
    self.isAppClip = isAppClip
    self.deviceSyncs = deviceSyncs
    self.isSharedIPad = isSharedIPad
  }
}

/// The rules that exclude items from a backup.
///
/// An item that no rule excludes is exported.
///
/// Source: Apple `SecItemDb.c` (`SecServerCopyKeychainPlist`, `s3dl_export_row`).
package enum ExportExclusions {
  /// The rules in the order in which they are checked; the first that applies gives the reason.
  package static let all: [ExportExclusion] = [
    ExportExclusion(reason: .passcodeOnly) { $0.item.protection == .whenPasscodeSetThisDeviceOnly },
    ExportExclusion(reason: .hardwareKey) { $0.item.hasToken },
    ExportExclusion(reason: .appClip) { $0.isAppClip },
    ExportExclusion(reason: .sharedGroup) { $0.item.isSharedCopy },
    ExportExclusion(reason: .systemBound) { SystemBoundItems.contains($0.item, isSharedIPad: $0.isSharedIPad) },
    ExportExclusion(reason: .needsAuthentication) { $0.isAccessControlled },
    ExportExclusion(reason: .deleted) { $0.item.isTombstone && !$0.deviceSyncs },
  ]

  /// Returns the reason to exclude an item, or `nil` if it is exported.
  package static func exclusionReason(for candidate: ExportCandidate) -> Reason? {
    all.first { $0.excludes(candidate) }?.reason
  }
}
