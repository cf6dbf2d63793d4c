package import KeychainFormats

/// A rule that excludes items from a backup.
package struct ExportRule: Sendable {
  /// The reason for the exclusion.
  package let reason: Reason
  /// Returns whether the rule excludes an item.
  let leavesOut: @Sendable (ExportCandidate) -> Bool
}

/// An item as its device stores it, with the flags from its columns that the export rules check.
package struct ExportCandidate: Sendable {
  /// The decrypted item.
  package var item: KeychainItem
  /// Whether the item has an access control with constraints.
  package var isAccessControlled: Bool
  /// Whether an App Clip created the row; only a column records this, never the item.
  package var isAppClip: Bool
  /// Whether the device takes part in synchronization, so that its backup includes tombstones.
  package var deviceSyncs: Bool
  /// Whether the device is a Shared iPad, which has more system-bound items.
  package var onSharedIPad: Bool

  /// Creates a candidate; by default an ordinary app's item on a device that does not sync.
  package init(
    item: KeychainItem, isAccessControlled: Bool = false, isAppClip: Bool = false, deviceSyncs: Bool = false,
    onSharedIPad: Bool = false
  ) {
    self.item = item
    self.isAccessControlled = isAccessControlled
    self.isAppClip = isAppClip
    self.deviceSyncs = deviceSyncs
    self.onSharedIPad = onSharedIPad
  }
}

/// The rules that exclude items from a backup.
///
/// An item that no rule excludes is exported.
///
/// Source: Apple `SecItemDb.c` (`SecServerCopyKeychainPlist`, `s3dl_export_row`).
package enum ExportRules {
  /// The rules in the order in which they are checked; the first that applies gives the reason.
  package static let all: [ExportRule] = [
    ExportRule(reason: .passcodeOnly) { $0.item.protection == .whenPasscodeSetThisDeviceOnly },
    ExportRule(reason: .hardwareKey) { $0.item.hasToken },
    ExportRule(reason: .appClip) { $0.isAppClip },
    ExportRule(reason: .sharedGroup) { $0.item.isSharedCopy },
    ExportRule(reason: .systemBound) { SystemBoundItems.contain($0.item, onSharedIPad: $0.onSharedIPad) },
    ExportRule(reason: .needsAuthentication) { $0.isAccessControlled },
    ExportRule(reason: .deleted) { $0.item.isTombstone && !$0.deviceSyncs },
  ]

  /// Returns the reason to exclude an item, or `nil` if it is exported.
  package static func reasonToLeaveOut(_ candidate: ExportCandidate) -> Reason? {
    all.first { $0.leavesOut(candidate) }?.reason
  }
}
