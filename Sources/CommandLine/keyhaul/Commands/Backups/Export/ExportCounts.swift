import KeyhaulKit
import Reports

/// The counts of the items that an export has processed.
struct ExportCounts {
  /// The number of items, readable or not.
  private(set) var count = 0
  /// The number of readable items of each kind.
  private(set) var readableByKind: [ItemKind: Int] = [:]
  /// The number of unreadable items for each reason.
  private(set) var unreadableByReason: [Reason: Int] = [:]
  /// The number of readable items whose secret is damaged.
  private(set) var damagedSecretCount = 0
  /// The reasons why items cannot be read, in the order of first occurrence.
  private(set) var unreadableReasons: [Reason] = []
  /// The number of secrets that a document would show.
  private(set) var revealableCount = 0
  /// The number of items of each kind that require authentication.
  private var protectedByKind: [ItemKind: Int] = [:]
  /// Whether to omit secrets that an access control protects.
  private let omitsProtectedSecrets: Bool

  init(omittingProtected omitsProtectedSecrets: Bool) { self.omitsProtectedSecrets = omitsProtectedSecrets }

  mutating func record(_ entry: KeychainEntry) {
    count += 1
    guard let item = entry.readablePart else {
      let reason = entry.reason ?? .malformed
      if unreadableByReason[reason] == nil { unreadableReasons.append(reason) }
      unreadableByReason[reason, default: 0] += 1
      return
    }
    readableByKind[item.kind, default: 0] += 1
    if entry.reason?.isDamage == true { damagedSecretCount += 1 }
    if isProtected(item) {
      protectedByKind[item.kind, default: 0] += 1
    } else if item.secret != nil {
      revealableCount += 1
    }
  }

  /// Returns whether an item's secret is omitted.
  func isProtected(_ item: KeychainItem) -> Bool { omitsProtectedSecrets && item.requiresAuthentication }

  func protectedCount(of kinds: [ItemKind]) -> Int {
    kinds.reduce(0) { count, kind in count + protectedByKind[kind, default: 0] }
  }

  var unreadableCount: Int { unreadableByReason.values.reduce(0, +) }
}
