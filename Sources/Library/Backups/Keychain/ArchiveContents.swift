public import KeychainFormats

/// Which items an archive's keychain holds, as far as their blobs say without any key: kind and protection class.
public struct ArchiveContents: Sendable, Equatable {
  /// How many items stand in the array of each kind.
  public private(set) var countByKind: [ItemKind: Int] = [:]
  /// Items whose blob names no known class are not in it.
  public private(set) var countByProtection: [ProtectionClass: Int] = [:]
  /// How many items there are, readable or not.
  public private(set) var total = 0

  /// Items that a backup with a password carries to any device.
  public private(set) var migratable = 0
  /// Items that only the device that made the backup gets back.
  public private(set) var thisDeviceOnly = 0
  /// Secrets without a name (version 0, of iOS 4), which can be read and which no restore takes.
  public private(set) var secretOnly = 0

  /// Counts the items; nothing of them is opened for it.
  public init(_ items: some Sequence<ArchivedItem>) {
    for item in items {
      total += 1
      countByKind[item.kind, default: 0] += 1
      if item.isSecretOnly { secretOnly += 1 }
      guard let protection = item.protection else { continue }
      countByProtection[protection, default: 0] += 1
      guard !item.isSecretOnly else { continue }
      if protection.isThisDeviceOnly { thisDeviceOnly += 1 } else { migratable += 1 }
    }
  }
}
