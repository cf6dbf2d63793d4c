public import KeychainFormats

/// Which items an archive's keychain holds, as far as their blobs say without any key: kind and protection class.
public struct ArchiveContents: Sendable, Equatable {
  public private(set) var countByKind: [ItemKind: Int] = [:]
  /// Items whose blob names no known class are not in it.
  public private(set) var countByProtection: [ProtectionClass: Int] = [:]
  public private(set) var total = 0

  /// Items that a backup with a password carries to any device.
  public var migratable: Int { count { !$0.isThisDeviceOnly } }
  /// Items that only the device that made the backup gets back.
  public var thisDeviceOnly: Int { count { $0.isThisDeviceOnly } }

  public init(_ items: some Sequence<ArchivedItem>) {
    for item in items {
      total += 1
      countByKind[item.kind, default: 0] += 1
      if let protection = item.protection { countByProtection[protection, default: 0] += 1 }
    }
  }

  private func count(where matches: (ProtectionClass) -> Bool) -> Int {
    countByProtection.reduce(0) { $0 + (matches($1.key) ? $1.value : 0) }
  }
}
