package import Basics
public import KeychainFormats

/// One rule of what a restore leaves out of an archive, although the item opens.
public struct RestoreRule: Sendable {
  /// The reason that it gives.
  public let reason: Reason
  let leavesOut: @Sendable (KeychainItem, RestoreSurroundings) -> Bool
}

/// What the planner knows besides the archive's items and the target's rows.
public struct RestoreSurroundings: Sendable, Hashable {
  /// The target takes part in synchronization, so that tombstones mean something there.
  public var targetSyncs: Bool
  /// The target is a Shared iPad, which has more system-bound items.
  public var onSharedIPad: Bool
  /// The backup has a password. Decides what a missing hardware key is called, never what moves.
  public var backupHasPassword: Bool

  /// Those in which most is left out: an item that arrives here arrives in all others.
  package static let strictest = RestoreSurroundings(targetSyncs: false, onSharedIPad: true)

  /// Creates surroundings; by default of a device that does not sync and a backup without a password.
  public init(targetSyncs: Bool = false, onSharedIPad: Bool = false, backupHasPassword: Bool = false) {
    self.targetSyncs = targetSyncs
    self.onSharedIPad = onSharedIPad
    self.backupHasPassword = backupHasPassword
  }
}

/// What a restore leaves out, in the order in which the reasons are given.
///
/// Archives of this project hold none of these; those that others wrote may. Source: Apple `SecItemDb.c`
/// (`SecServerImportItem`). Three rules are ours: nothing of the passcode class and nothing that claims an access control
/// is taken from an archive, which no device puts there; and a tombstone is kept out of a device that does not sync,
/// where it could only hide an item.
public enum RestoreRules {
  /// The rules in the order in which they are asked; the first that applies names the reason.
  public static let all: [RestoreRule] = [
    RestoreRule(reason: .passcodeOnly) { item, _ in item.protection == .whenPasscodeSetThisDeviceOnly },
    RestoreRule(reason: .hardwareKey) { item, _ in item.hasToken },
    RestoreRule(reason: .sharedGroup) { item, _ in item.isSharedCopy },
    RestoreRule(reason: .systemBound) { item, around in
      SystemBoundItems.contain(item, onSharedIPad: around.onSharedIPad)
    },
    RestoreRule(reason: .needsAuthentication) { item, _ in item[.accessControl] != nil },
    RestoreRule(reason: .deleted) { item, around in item.isTombstone && !around.targetSyncs },
  ]

  /// Why an item stays behind, or `nil` if it is imported.
  public static func reasonToLeaveOut(_ item: KeychainItem, _ surroundings: RestoreSurroundings) -> Reason? {
    all.first { $0.leavesOut(item, surroundings) }?.reason
  }
}

/// Which rows a restore removes before it puts a backup in place: what is not synchronized, not in one of the kept groups
/// and not a shared copy.
///
/// Source: Apple `SecItemDb.c` (`SecServerImportKeychainInPlist`).
package enum RestoreRemoval {
  /// Whose rows a restore leaves in place.
  package static let keptAccessGroups = [
    "com.apple.security.sos", "com.apple.security.sos-usercredential", "com.apple.security.ckks",
    "com.apple.security.egoIdentities", "com.apple.security.octagon",
  ]

  /// The condition of the statement that removes, on columns of any type: a NULL keeps the row.
  package static func removes(_ columns: [AttributeCode: ColumnValue]) -> Bool {
    guard columns[.synchronizable] == .integer(0), columns[.sharingGroup] == .text([]) else { return false }
    return !keptAccessGroups.contains { columns[.accessGroup] == .text($0) }
  }
}

/// Why a row could not be opened.
public enum RowFault: Hashable, Sendable {
  /// No key of this device will ever open it, or what it opens to is no item (-26275). The reason holds no value.
  case undecodable(reason: String)
  /// The key of its class is not in memory at this moment (-25308).
  case locked(KeyClass)
  /// The keybag's key of its class cannot be used at all (-25291).
  case keyUnavailable(KeyClass)

  /// Whether the row itself is at fault, so that no unlocking will help.
  public var isPermanent: Bool {
    switch self {
    case .undecodable: true
    case .locked, .keyUnavailable: false
    }
  }
}

/// Which items a restore makes synchronized although their backup doesn't say so.
package enum SyncInference {
  /// Safari's passwords from before there was synchronization: internet passwords in the group of the network layer,
  /// with server, protocol and authentication type as text, not shared.
  ///
  /// Source: Apple `SecItemDb.c` (`SecItemImportInferSyncable`).
  package static func appliesTo(_ item: KeychainItem) -> Bool {
    item.kind == .internetPassword && item.accessGroup == "com.apple.cfnetwork"
      && item[.server]?.stringValue != nil && item[.protocolType]?.stringValue != nil
      && item[.authenticationType]?.stringValue != nil && (item[.sharingGroup]?.stringValue ?? "").isEmpty
  }
}
