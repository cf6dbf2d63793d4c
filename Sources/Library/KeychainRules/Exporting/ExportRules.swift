public import KeychainFormats

/// One rule of what a backup leaves out.
public struct ExportRule: Sendable {
  /// The reason it gives.
  public let reason: Reason
  /// Whether it applies to an item.
  let leavesOut: @Sendable (ExportCandidate) -> Bool
}

/// What the export rules look at: an item as its device knows it, with the marks that its columns carry.
public struct ExportCandidate: Sendable {
  /// The item in clear.
  public var item: KeychainItem
  /// The item has an access control with constraints.
  public var isAccessControlled: Bool
  /// The row is marked as one of an App Clip; the mark is in a column, never in the item.
  public var isAppClip: Bool
  /// The device takes part in synchronization, so that tombstones travel.
  public var deviceSyncs: Bool
  /// The device is a Shared iPad, which has more system-bound items.
  public var onSharedIPad: Bool

  /// Creates a candidate; without marks it is an ordinary app's item on a device that does not sync.
  public init(
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

/// What a backup leaves out, in the order in which the reasons are given; an item that no rule names is exported.
///
/// Source: Apple `SecItemDb.c` (`SecServerCopyKeychainPlist`, `s3dl_export_row`).
public enum ExportRules {
  /// The rules in the order in which they are asked; the first that applies names the reason.
  public static let all: [ExportRule] = [
    ExportRule(reason: .passcodeOnly) { $0.item.protection == .whenPasscodeSetThisDeviceOnly },
    ExportRule(reason: .hardwareKey) { $0.item.hasToken },
    ExportRule(reason: .appClip) { $0.isAppClip },
    ExportRule(reason: .sharedGroup) { $0.item.isSharedCopy },
    ExportRule(reason: .systemBound) { SystemBoundItems.contain($0.item, onSharedIPad: $0.onSharedIPad) },
    ExportRule(reason: .needsAuthentication) { $0.isAccessControlled },
    ExportRule(reason: .deleted) { $0.item.isTombstone && !$0.deviceSyncs },
  ]

  /// Why an item is left out, or `nil` if it is exported.
  public static func reasonToLeaveOut(_ candidate: ExportCandidate) -> Reason? {
    all.first { $0.leavesOut(candidate) }?.reason
  }
}
