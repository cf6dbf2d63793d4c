import Basics
package import KeychainFormats

/// The items that belong to the system of one device. Devices never back them up, and a restore keeps the target's own.
///
/// Source: Apple `SecItemDb.c` (`SecItemIsSystemBound`).
package enum SystemBoundItems {
  /// A row of Apple's table. A missing condition matches any value; an existing condition matches only text.
  struct Row: Sendable {
    enum Match: Sendable {
      case exactly(String)
      case beginning(String)

      func accepts(_ value: String?) -> Bool {
        guard let value else { return false }
        return switch self {
        case .exactly(let text): value == text
        case .beginning(let prefix): value.hasPrefix(prefix)
        }
      }
    }

    var kinds: Set<ItemKind> = [.genericPassword]
    let accessGroup: String
    var service: Match?
    var account: Match?
    var label: Match?

    func matches(_ item: KeychainItem) -> Bool {
      guard kinds.contains(item.kind), item.accessGroup == accessGroup else { return false }
      let conditions = [(service, AttributeCode.service), (account, .account), (label, .label)]
      return conditions.allSatisfy { match, code in match?.accepts(item[code]?.stringValue) ?? true }
    }
  }

  /// The access groups in which every item is system-bound, even if it cannot be decrypted now.
  package static let groups = ["com.apple.security.sos", "lockdown-identities"]

  /// The rows for every device.
  static let rowsForAllDevices: [Row] =
    groups.map { Row(kinds: Set(ItemKind.allCases), accessGroup: $0) } + [
      Row(
        accessGroup: "apple", service: .exactly("com.apple.managedconfiguration"), account: .exactly("Public")),
      Row(
        accessGroup: "apple", service: .exactly("com.apple.managedconfiguration"), account: .exactly("Private")),
      Row(accessGroup: "apple", service: .exactly("com.apple.account.CloudKit.token")),
      Row(accessGroup: "apple", service: .exactly("com.apple.account.idms.continuation-key")),
    ]

  /// The additional rows for a Shared iPad.
  static let rowsForSharedIPad: [Row] =
    ["push.apple.com", "push.apple.com,PerAppToken.v0"].map {
      Row(accessGroup: "com.apple.apsd", service: .exactly($0))
    }
    + ["fmf.token", "fmf.apptoken", "fmip.siritoken", "cloudkit.token"].map {
      Row(accessGroup: "appleaccount", service: .exactly("com.apple.appleaccount." + $0))
    }
    + [
      "AppleAccount.token", "AppleAccount.password", "AppleAccount.rpassword", "idms.token", "idms.heartbeat-token",
      "idms.continuation-key", "CloudKit.token", "IdentityServices.password", "IdentityServices.rpassword",
      "IdentityServices.token",
    ].map { Row(accessGroup: "apple", service: .exactly("com.apple.account." + $0)) }
    + ["BackupIDSAccountToken", "com.apple.ids", "ids", "IDS"].map {
      Row(accessGroup: "apple", service: .exactly($0))
    }
    + [
      Row(accessGroup: "apple", service: .beginning("com.apple.gs.")),
      Row(accessGroup: "apple", service: .exactly("com.apple.facetime"), account: .exactly("registrationV1")),
      Row(accessGroup: "com.apple.ind", service: .exactly("com.apple.ind.registration")),
      Row(accessGroup: "ichat", service: .exactly("ids")),
      Row(kinds: [.key], accessGroup: "ichat", label: .exactly("iMessage Encryption Key")),
      Row(kinds: [.key], accessGroup: "ichat", label: .exactly("iMessage Signing Key")),
      Row(accessGroup: "com.apple.rapport"),
    ]

  private static let groupsInTable = Set((rowsForAllDevices + rowsForSharedIPad).map(\.accessGroup))

  /// Returns whether an item is system-bound.
  ///
  /// If the flag `sysb` is a number, it decides: 0 means not bound, any other number bound. Otherwise, an item without an
  /// access group is not bound, a shared copy is bound, and Apple's table decides about other items.
  package static func contains(_ item: KeychainItem, isSharedIPad: Bool = false) -> Bool {
    if let flag = item[.systemBound]?.integerValue { return flag != 0 }
    guard let group = item.accessGroup else { return false }
    if item.isSharedCopy { return true }
    // Almost every item is in a group that no row lists.
    guard groupsInTable.contains(group) else { return false }
    let rows = isSharedIPad ? rowsForAllDevices + rowsForSharedIPad : rowsForAllDevices
    return rows.contains { $0.matches(item) }
  }
}
