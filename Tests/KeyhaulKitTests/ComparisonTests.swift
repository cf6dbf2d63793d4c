import Backups
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Testing
import VirtualDevice

@testable import KeyhaulKit

@Suite("Comparison of four restores")
struct ComparisonTests {
  /// The reason to stay behind in each restore, in the order of `RestoreScenario.allCases`, written by hand.
  static let table: [(ProtectionClass, [Reason?])] = [
    (.whenUnlocked, [nil, nil, nil, .backupNotEncrypted]), (.afterFirstUnlock, [nil, nil, nil, .backupNotEncrypted]),
    (.always, [nil, nil, nil, .backupNotEncrypted]),
    (.whenUnlockedThisDeviceOnly, [nil, .deviceBound, nil, .deviceBound]),
    (.afterFirstUnlockThisDeviceOnly, [nil, .deviceBound, nil, .deviceBound]),
    (.alwaysThisDeviceOnly, [nil, .deviceBound, nil, .deviceBound]),
    (.whenPasscodeSetThisDeviceOnly, [.passcodeOnly, .passcodeOnly, .passcodeOnly, .passcodeOnly]),
  ]

  @Test("Each class has the outcome of the table in each of the four restores", arguments: table)
  func classes(_ protection: ProtectionClass, _ reasons: [Reason?]) {
    #expect(RestoreScenario.allCases.map { protection.restoreOutcome(in: $0).reason } == reasons)
  }

  /// The number of items of the bundled phone `old-phone`.
  private static let itemCount = 22

  @Test("The comparison for a device equals the results of four real restores")
  func device() throws {
    let setup = try TestSetup(seed: "four")
    let source = try setup.bundled("old-phone")
    let sourceSession = try source.openTestSession(.reading)
    let target = try setup.phone("target", passcode: "1")
    let comparison = try MigrationComparison(
      of: sourceSession, onto: target.openTestSession(.reading), hasPassword: true)
    sourceSession.invalidate()
    for scenario in RestoreScenario.allCases {
      let password = scenario.hasPassword ? TestSetup.password : nil
      let path = try setup.backUp(source, password: password, named: "b\(scenario.hasPassword)")
      let session = try (scenario.onSameDevice ? source : target).openTestSession()
      defer { session.invalidate() }
      let rowsBefore = try KeychainSnapshot(session).rows
      try KeychainSnapshot.empty(session.device)
      let unlocked = try setup.open(path, password: password, on: session)
      try session.restore(unlocked)
      let restoredCount = try KeychainSnapshot(session).items.count
      #expect(comparison[scenario].arrives == restoredCount, "\(scenario)")
      #expect(comparison[scenario].staysBehind == Self.itemCount - restoredCount)
      if scenario.onSameDevice {
        try KeychainSnapshot.empty(session.device)
        try session.insertUnchanged(rowsBefore.compactMap(\.item))
      }
    }
    #expect(RestoreScenario.allCases.map { comparison[$0].arrives } == [18, 14, 18, 0])
    #expect(comparison.current == RestoreScenario(hasPassword: true, onSameDevice: false))
  }

  @Test("The comparison for a device is the same whether the planned backup has a password or not")
  func order() throws {
    let setup = try TestSetup(seed: "order")
    let source = try setup.bundled("old-phone").openTestSession(.reading)
    let target = try setup.phone("target", passcode: "1").openTestSession(.reading)
    let comparisons = try [true, false].map { try MigrationComparison(of: source, onto: target, hasPassword: $0) }
    #expect(comparisons[0].items.count == Self.itemCount && comparisons[0].items == comparisons[1].items)
    #expect(comparisons.map(\.current.hasPassword) == [true, false])
  }

  @Test("The comparison for a backup covers backups with and without a password", arguments: [true, false])
  func archive(hasPassword: Bool) throws {
    let setup = try TestSetup(seed: "archive \(hasPassword)")
    let source = try setup.bundled("old-phone")
    let path = try setup.backUp(source, password: hasPassword ? TestSetup.password : nil)
    for (device, isSame) in [(source, true), (try setup.bundled("new-phone"), false)] {
      let session = try device.openTestSession(.reading)
      defer { session.invalidate() }
      let unlocked = try setup.open(path, password: hasPassword ? TestSetup.password : nil, on: session)
      let plan = try Restorer.plan(unlocked, onto: session, policy: .merge)
      let comparison = MigrationComparison(of: unlocked, plan)
      #expect(RestoreScenario.allCases.map { comparison[$0].arrives } == [18, 14, 18, 0])
      #expect(comparison.current == RestoreScenario(hasPassword: hasPassword, onSameDevice: isSame))
      #expect(comparison[comparison.current].arrives == plan.summary.migrates)
      for (item, decision) in zip(comparison.items, plan.decisions) {
        #expect(item[comparison.current].reason == decision.outcome.reason)
      }
    }
  }

  @Test("The advice counts the items that a password moves, and those that never move")
  func advice() throws {
    let setup = try TestSetup(seed: "advice")
    let source = try setup.bundled("old-phone").openTestSession(.reading)
    let target = try setup.bundled("new-phone").openTestSession(.reading)
    func sentence(_ hasPassword: Bool, onto device: DeviceSession) throws -> String {
      let comparison = try MigrationComparison(of: source, onto: device, hasPassword: hasPassword)
      return comparison.advice.sentence(for: comparison.current)
    }
    #expect(
      try sentence(false, onto: target)
        == "with a password, 14 more items would move; 8 stay behind in any case; only the source device can restore 4 of "
        + "them")
    #expect(
      try sentence(true, onto: target)
        == "with the password, 14 of 22 items move, and no more can; 8 stay behind in any case; only the source device "
        + "can restore 4 of them")
    #expect(
      try sentence(true, onto: source)
        == "18 of 22 items are restored to the source device; 4 stay behind in any case")
  }

  @Test("A damaged item is damaged in all four restores and counted separately")
  func damage() throws {
    let setup = try TestSetup(seed: "damage")
    let source = try setup.bundled("old-phone")
    let path = try TamperingWriter(setup: setup, password: nil).backUp(source) { contents in
      try contents.editEntries { $0[2].blob = [1] }
    }
    let session = try setup.bundled("new-phone").openTestSession(.reading)
    let unlocked = try setup.open(path, password: nil, on: session)
    let comparison = MigrationComparison(
      of: unlocked, try Restorer.plan(unlocked, onto: session, policy: .merge))
    #expect(RestoreScenario.allCases.allSatisfy { comparison[$0].unreadable == 1 })
    let advice = comparison.advice
    #expect(advice.gainedByPassword == 13 && advice.neverToTarget == 4 && advice.damaged == 1)
    #expect(
      advice.sentence(for: comparison.current)
        == "with a password, 13 more items would move; 4 stay behind in any case; only the source device can restore "
        + "them; 1 cannot be read in this copy")

    let audit = KeychainAudit(comparison)
    #expect(audit.unreadable.map(\.reasonToStay) == [.malformed])
    #expect(audit.leaving.count + audit.staying.count + 1 == audit.items.count)
  }

  @Test("The advice is grammatical for every count")
  func adviceForEveryCount() {
    func sentence(
      _ hasPassword: Bool, arrivesNow: Int = 0, gainedByPassword: Int = 0, neverToTarget: Int, sameDeviceOnly: Int,
      damaged: Int = 0
    ) -> String {
      MigrationComparison.Advice(
        total: arrivesNow + gainedByPassword + neverToTarget + damaged, arrivesNow: arrivesNow,
        gainedByPassword: gainedByPassword, lostWithoutPassword: arrivesNow, sameDeviceOnly: sameDeviceOnly,
        neverToTarget: neverToTarget, damaged: damaged
      ).sentence(for: RestoreScenario(hasPassword: hasPassword, onSameDevice: false))
    }
    #expect(
      sentence(true, arrivesNow: 6667, neverToTarget: 3333, sameDeviceOnly: 1250, damaged: 1001)
        == "with the password, 6,667 of 11,001 items move, and no more can; 3,333 stay behind in any case; only the "
        + "source device can restore 1,250 of them; 1,001 cannot be read in this copy")
    #expect(
      sentence(true, arrivesNow: 2, neverToTarget: 0, sameDeviceOnly: 0).hasSuffix("; none of these stays behind"))
    #expect(
      sentence(false, gainedByPassword: 1, neverToTarget: 2, sameDeviceOnly: 1)
        == "with a password, 1 more item would move; 2 stay behind in any case; only the source device can restore 1 of "
        + "them")
  }

  @Test("An audit lists the items that can leave the device, that stay, and that have a deprecated class")
  func audit() throws {
    let setup = try TestSetup(seed: "audit")
    let source = try setup.bundled("old-phone").openTestSession(.reading)
    let audit = KeychainAudit(
      try MigrationComparison(of: source, onto: setup.bundled("new-phone").openTestSession(.reading), hasPassword: true)
    )
    #expect(audit.items.count == Self.itemCount && audit.leaving.count == 14 && audit.staying.count == 8)
    #expect(
      Set(audit.deprecated.compactMap(\.identity.label))
        == ["Tracker", "Guest", "ftp.example.net", "Example Root CA"])
    // One of the five items has no label.
    #expect(audit.deprecated.count == 5)
    #expect(audit.staying.allSatisfy { $0.reasonToStay != nil } && audit.leaving.allSatisfy { $0.reasonToStay == nil })
  }
}

@Suite("Items by app")
struct ItemsByAppTests {
  @Test(
    "An access group is shown as the name of its app, the identifier without the team prefix, or unchanged",
    arguments: [
      ("ABCDE12345.org.example.chat", AppName.Kind.app, "Chat"),
      ("ABCDE12345.org.example.other", .teamGroup, "org.example.other"),
      ("apple", .group, "apple"), ("com.apple.cfnetwork", .group, "com.apple.cfnetwork"),
      ("abcde12345.org.example.chat", .group, "abcde12345.org.example.chat"),
      ("ABCDE1234.org.example.chat", .group, "ABCDE1234.org.example.chat"), ("ABCDE12345.", .group, "ABCDE12345."),
      ("ABCDE12345", .group, "ABCDE12345"),
    ])
  func names(_ group: String, _ kind: AppName.Kind, _ text: String) {
    let directory = AppDirectory(installed: ["org.example.chat": "Chat"])
    let app = directory.app(of: item(of: group))
    #expect(app.kind == kind && app.text == text)
  }

  private func item(of group: String?) -> ItemDescriptor {
    var identity = ItemDescriptor(.genericPassword, called: "item")
    identity.accessGroup = group
    return identity
  }

  @Test("Decrypted items without a group and encrypted items have no known owner", arguments: [nil, ""])
  func withoutGroup(group: String?) {
    let directory = AppDirectory([])
    #expect(directory.app(of: item(of: group)).kind == .withoutGroup)
    #expect(directory.app(of: item(of: group)).displayName == "(names no app)")
    let encrypted = directory.app(of: ItemDescriptor(undecryptable: .genericPassword, accessGroup: group))
    #expect(encrypted.kind == .encrypted && encrypted.displayName == "(encrypted)")
    // The table of a locked device shows the access groups of encrypted items.
    #expect(directory.app(of: ItemDescriptor(undecryptable: .key, accessGroup: "apple")).kind == .group)
  }

  @Test("The apps of a virtual device list their groups, and two apps can share one")
  func device() {
    let directory = AppDirectory([
      DeviceApp(name: "mail", accessGroups: ["shared", "A"]), DeviceApp(name: "calendar", accessGroups: ["shared"]),
    ])
    #expect(directory.app(of: item(of: "A")).text == "mail")
    #expect(directory.app(of: item(of: "shared")).text == "calendar, mail")
  }

  @Test("Apps with the most losses come first, and items that need no action do not count")
  func order() throws {
    let setup = try TestSetup(seed: "apps")
    let source = try setup.bundled("old-phone").openTestSession(.reading)
    let target = try setup.bundled("new-phone").openTestSession(.reading)
    let summaries = try Restorer.plan(SimulatedBackup(of: source, hasPassword: true), onto: target, policy: .replace)
      .byApp(AppDirectory(source.record.apps))
    #expect(summaries.prefix(4).map(\.app.text) == ["bank", "chat", "apple", "home"])
    #expect(summaries.prefix(5).map(\.losses.count) == [3, 2, 1, 1, 0])
    #expect(summaries.first { $0.app.text == "com.apple.security.sos" }?.losses.isEmpty == true)
    #expect(summaries.reduce(0) { $0 + $1.migrates.count + $1.staysBehind.count + $1.unreadable.count } == 22)
    // Without a password everything stays behind, but the losses exclude the items that a backup with a password would
    // move.
    let planWithoutPassword = try Restorer.plan(
      SimulatedBackup(of: source, hasPassword: false), onto: target, policy: .replace)
    #expect(planWithoutPassword.byApp(AppDirectory([])).reduce(0) { $0 + $1.losses.count } == 7)
  }
}
