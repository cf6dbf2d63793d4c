import Basics
import KeychainFormats
import KeychainRules
import TestSupport
import Testing

@Suite("Items that a backup excludes")
struct ExportExclusionTests {
  private func reason(
    _ item: KeychainItem, isAccessControlled: Bool = false, isAppClip: Bool = false, deviceSyncs: Bool = false
  ) -> Reason? {
    ExportExclusions.exclusionReason(
      for:
        ExportCandidate(
          item: item, isAccessControlled: isAccessControlled, isAppClip: isAppClip, deviceSyncs: deviceSyncs))
  }

  private let ordinaryItem = KeychainItem.genericPassword("a")

  @Test("Ordinary items are exported in every protection class except one")
  func ordinary() {
    for protection in ProtectionClass.allCases {
      let expected: Reason? = protection == .whenPasscodeSetThisDeviceOnly ? .passcodeOnly : nil
      #expect(reason(.genericPassword("a", as: protection)) == expected)
    }
  }

  @Test("An item on a token is excluded, unless its token identifier is empty")
  func token() {
    #expect(reason(ordinaryItem.with([.tokenID: .string("com.apple.setoken")])) == .hardwareKey)
    #expect(reason(ordinaryItem.with([.tokenID: .data([])])) == .hardwareKey)
    #expect(reason(ordinaryItem.with([.tokenID: .string("")])) == nil)
  }

  @Test("An item whose row has the App Clip flag is excluded")
  func appClip() {
    #expect(reason(ordinaryItem, isAppClip: true) == .appClip)
    #expect(reason(ordinaryItem.with([.appClip: .integer(1)])) == nil)
  }

  @Test("A shared copy is excluded, but not an item whose sharing group is empty or not text")
  func shared() {
    #expect(reason(ordinaryItem.with([.sharingGroup: .string("g")])) == .sharedGroup)
    #expect(reason(ordinaryItem.with([.sharingGroup: .string("")])) == nil)
    #expect(reason(ordinaryItem.with([.sharingGroup: .data([1])])) == nil)
  }

  @Test("A system-bound item is excluded, and so is one with the system-bound flag")
  func system() {
    #expect(reason(.genericPassword("a", group: "com.apple.security.sos")) == .systemBound)
    #expect(reason(.genericPassword("a", group: "com.apple.security.sos2")) == nil)
    #expect(reason(ordinaryItem.with([.systemBound: .integer(1)])) == .systemBound)
  }

  @Test("An item with an access control is excluded")
  func accessControl() { #expect(reason(ordinaryItem, isAccessControlled: true) == .needsAuthentication) }

  @Test("A tombstone is excluded, unless the device syncs")
  func tombstone() {
    let tombstone = ordinaryItem.with([.tombstone: .integer(1)])
    #expect(reason(tombstone) == .deleted)
    #expect(reason(tombstone, deviceSyncs: true) == nil)
    #expect(reason(ordinaryItem.with([.tombstone: .integer(0)])) == nil)
  }

  @Test("The first of several matching rules gives the reason")
  func order() {
    let order: [Reason] = [
      .passcodeOnly, .hardwareKey, .appClip, .sharedGroup, .systemBound, .needsAuthentication, .deleted,
    ]
    #expect(ExportExclusions.all.map(\.reason) == order)
    for start in order.indices {
      var item = ordinaryItem
      let matchingReasons = Set(order[start...])
      if matchingReasons.contains(.passcodeOnly) { item.protection = .whenPasscodeSetThisDeviceOnly }
      if matchingReasons.contains(.hardwareKey) { item[.tokenID] = .string("t") }
      if matchingReasons.contains(.sharedGroup) { item[.sharingGroup] = .string("g") }
      if matchingReasons.contains(.systemBound) { item[.systemBound] = .integer(1) }
      item[.tombstone] = .integer(1)
      let reason = reason(
        item, isAccessControlled: matchingReasons.contains(.needsAuthentication),
        isAppClip: matchingReasons.contains(.appClip))
      #expect(reason == order[start])
    }
  }
}

@Suite("System-bound items")
struct SystemBoundTests {
  private func generic(_ group: String, _ service: String, _ account: String = "x") -> KeychainItem {
    .genericPassword(account, service: service, group: group)
  }

  private func key(_ label: String, group: String = "ichat", kind: ItemKind = .key) -> KeychainItem {
    KeychainItem(kind: kind, attributes: [.accessGroup: .string(group), .label: .string(label)])
  }

  @Test("Every kind of item is system-bound in two access groups")
  func groups() {
    for kind in ItemKind.allCases {
      for group in ["com.apple.security.sos", "lockdown-identities"] {
        #expect(SystemBoundItems.contains(KeychainItem(kind: kind, attributes: [.accessGroup: .string(group)])))
      }
      #expect(!SystemBoundItems.contains(KeychainItem(kind: kind, attributes: [.accessGroup: .string("apple")])))
      for similarGroup in ["com.apple.security.SOS", "com.apple.security.so", "lockdown-identities ", ""] {
        #expect(!SystemBoundItems.contains(KeychainItem(kind: kind, attributes: [.accessGroup: .string(similarGroup)])))
      }
    }
  }

  @Test("Three services in the group apple are system-bound, one of them only for two accounts")
  func services() {
    for (service, account) in [
      ("com.apple.managedconfiguration", "Public"), ("com.apple.managedconfiguration", "Private"),
      ("com.apple.account.CloudKit.token", "any"), ("com.apple.account.idms.continuation-key", "any"),
    ] {
      let item = generic("apple", service, account)
      #expect(SystemBoundItems.contains(item))
      #expect(!SystemBoundItems.contains(item.with([.accessGroup: .string("app")])))
      #expect(!SystemBoundItems.contains(item.with([.service: .data(Array(service.utf8))])))
      #expect(!SystemBoundItems.contains(item.with([.service: .string(service + "x")])))
      #expect(!SystemBoundItems.contains(item.without(.service)))
      #expect(!SystemBoundItems.contains(KeychainItem(kind: .internetPassword, attributes: item.attributes)))
    }
    #expect(!SystemBoundItems.contains(generic("apple", "com.apple.managedconfiguration", "public")))
    #expect(!SystemBoundItems.contains(generic("apple", "com.apple.managedconfiguration").without(.account)))
    let dataAccount = generic("apple", "com.apple.managedconfiguration").with([.account: .data(Array("Public".utf8))])
    #expect(!SystemBoundItems.contains(dataAccount))
  }

  @Test("A numeric sysb attribute takes precedence over the access group")
  func flag() {
    let boundItem = KeychainItem.genericPassword("a", group: "com.apple.security.sos")
    let ordinaryItem = KeychainItem.genericPassword("a")
    #expect(!SystemBoundItems.contains(boundItem.with([.systemBound: .integer(0)])))
    for number in [1, 2, -1] as [Int64] {
      #expect(SystemBoundItems.contains(ordinaryItem.with([.systemBound: .integer(number)])))
    }
    for nonNumericValue: PropertyValue in [.string("1"), .data([1])] {
      #expect(SystemBoundItems.contains(boundItem.with([.systemBound: nonNumericValue])))
      #expect(!SystemBoundItems.contains(ordinaryItem.with([.systemBound: nonNumericValue])))
    }
    #expect(SystemBoundItems.contains(ordinaryItem.with([.systemBound: .integer(1)]).without(.accessGroup)))
  }

  @Test("An item whose access group is missing or not text is not system-bound")
  func groupless() {
    let boundItem = KeychainItem.genericPassword("a", group: "com.apple.security.sos")
    #expect(!SystemBoundItems.contains(boundItem.without(.accessGroup)))
    #expect(!SystemBoundItems.contains(boundItem.with([.accessGroup: .data(Array("com.apple.security.sos".utf8))])))
    #expect(!SystemBoundItems.contains(boundItem.without(.accessGroup).with([.sharingGroup: .string("g")])))
  }

  @Test("A shared copy is system-bound")
  func shared() {
    #expect(SystemBoundItems.contains(.genericPassword("a").with([.sharingGroup: .string("g")])))
    #expect(!SystemBoundItems.contains(.genericPassword("a").with([.sharingGroup: .string("")])))
  }

  /// The services of generic passwords that are system-bound only on a Shared iPad, by access group.
  private static let sharedIPadServices: [(group: String, services: [String])] = [
    ("com.apple.apsd", ["push.apple.com", "push.apple.com,PerAppToken.v0"]),
    (
      "appleaccount",
      ["fmf.token", "fmf.apptoken", "fmip.siritoken", "cloudkit.token"].map { "com.apple.appleaccount." + $0 }
    ),
    (
      "apple",
      [
        "AppleAccount.token", "AppleAccount.password", "AppleAccount.rpassword", "idms.token", "idms.heartbeat-token",
        "IdentityServices.password", "IdentityServices.rpassword", "IdentityServices.token",
      ].map { "com.apple.account." + $0 }
    ),
    ("apple", ["BackupIDSAccountToken", "com.apple.ids", "ids", "IDS", "com.apple.gs.anything", "com.apple.gs."]),
    ("com.apple.ind", ["com.apple.ind.registration"]), ("ichat", ["ids"]), ("com.apple.rapport", ["any", ""]),
  ]

  @Test("A Shared iPad has additional system-bound items")
  func sharedIPad() {
    var items = Self.sharedIPadServices.flatMap { group, services in services.map { generic(group, $0) } }
    items.append(generic("apple", "com.apple.facetime", "registrationV1"))
    items += [key("iMessage Encryption Key"), key("iMessage Signing Key")]
    for item in items {
      #expect(SystemBoundItems.contains(item, isSharedIPad: true), "\(item.attributes)")
      #expect(!SystemBoundItems.contains(item), "\(item.attributes)")
    }
  }

  @Test("Items that resemble the additional system-bound items are not system-bound on a Shared iPad")
  func similarOnSharedIPad() {
    for item in [
      generic("apple", "com.apple.facetime"), generic("apple", "com.apple.gs"), generic("ichat", "IDS"),
      key("iMessage Encryption Key", kind: .certificate), key("iMessage Key"),
      key("iMessage Signing Key", group: "apple"),
    ] {
      #expect(!SystemBoundItems.contains(item, isSharedIPad: true), "\(item.attributes)")
    }
  }
}

@Suite("Items that a restore excludes")
struct RestoreExclusionTests {
  private func reason(_ item: KeychainItem, targetSyncs: Bool = false, isSharedIPad: Bool = false) -> Reason? {
    RestoreExclusions.exclusionReason(
      for: item, in: RestoreContext(targetSyncs: targetSyncs, isSharedIPad: isSharedIPad))
  }

  private let ordinaryItem = KeychainItem.genericPassword("a")

  @Test("Each exclusion rule applies on its own")
  func eachRule() {
    #expect(reason(ordinaryItem) == nil)
    #expect(reason(.genericPassword("a", as: .whenPasscodeSetThisDeviceOnly)) == .passcodeOnly)
    #expect(reason(ordinaryItem.with([.tokenID: .string("t")])) == .hardwareKey)
    #expect(reason(ordinaryItem.with([.sharingGroup: .string("g")])) == .sharedGroup)
    #expect(reason(.genericPassword("a", group: "lockdown-identities")) == .systemBound)
    #expect(reason(ordinaryItem.with([.accessControl: .dictionary([:])])) == .needsAuthentication)
    #expect(reason(ordinaryItem.with([.accessControl: .data([])])) == .needsAuthentication)
    let tombstone = ordinaryItem.with([.tombstone: .integer(1)])
    #expect(reason(tombstone) == .deleted)
    #expect(reason(tombstone, targetSyncs: true) == nil)
    #expect(reason(.genericPassword("a", group: "com.apple.rapport")) == nil)
    #expect(reason(.genericPassword("a", group: "com.apple.rapport"), isSharedIPad: true) == .systemBound)
  }

  @Test("An item that is restored in the strictest context is restored in every context")
  func strictest() {
    let services = ["ids", "com.apple.account.AppleAccount.token", "com.apple.account.CloudKit.token", "other"]
    let items =
      [ordinaryItem, ordinaryItem.with([.tombstone: .integer(1)]), ordinaryItem.with([.tombstone: .integer(0)])]
      + [ordinaryItem.with([.systemBound: .integer(0)]), ordinaryItem.with([.systemBound: .integer(1)])]
      + ["apple", "ichat", "com.apple.rapport", "lockdown-identities", "app"].flatMap { group in
        services.map { KeychainItem.genericPassword("a", service: $0, group: group) }
      }
    let restored = items.filter { RestoreExclusions.exclusionReason(for: $0, in: .strictest) == nil }
    // The number of items that the loop below checks.
    #expect(restored.count == 11)
    for item in restored {
      for (targetSyncs, isSharedIPad) in [(false, false), (false, true), (true, false), (true, true)] {
        #expect(reason(item, targetSyncs: targetSyncs, isSharedIPad: isSharedIPad) == nil, "\(item.attributes)")
      }
    }
  }

  @Test("The exclusion rules are checked in this order")
  func order() {
    let order: [Reason] = [.passcodeOnly, .hardwareKey, .sharedGroup, .systemBound, .needsAuthentication, .deleted]
    #expect(RestoreExclusions.all.map(\.reason) == order)
  }
}
