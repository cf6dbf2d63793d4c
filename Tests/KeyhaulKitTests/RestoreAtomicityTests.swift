import Backups
import KeychainCrypto
import KeychainFormats
import KeychainRules
import TestSupport
import Testing
import VirtualDevice

@testable import KeyhaulKit

@Suite("Atomicity of restores")
struct RestoreAtomicityTests {
  private struct PendingRestore {
    let setup = try? TestSetup(seed: "halfway")
    let session: DeviceSession
    let archive: UnlockedBackup
    let before: [[String: AnyHashable]]

    init() throws {
      let setup = try #require(setup)
      let source = try setup.phone("source")
      let first = try source.openTestSession()
      try first.insertUnchanged((0..<5).map { .password("arriving \($0)") } + [.password("both").dated(2000)])
      first.invalidate()
      session = try setup.phone("target").openTestSession()
      try session.insertUnchanged(
        .password("both"), .password("resident"), .password("own", attributes: [.systemBound: .integer(1)]))
      archive = try setup.open(
        try setup.backUp(source, password: TestSetup.password), password: TestSetup.password, on: session)
      before = try KeychainSnapshot(session).image.map { $0.mapValues { $0 as AnyHashable } }
    }

    func expectUnchanged() throws {
      #expect(try KeychainSnapshot(session).image.map { $0.mapValues { $0 as AnyHashable } } == before)
    }
  }

  private func plan(
    _ plan: MigrationPlan, imports: [MigrationPlan.PlannedImport]? = nil, cleared: Int? = nil
  ) -> MigrationPlan {
    MigrationPlan(plan, imports: imports, removedRowCount: cleared)
  }

  @Test("An import that ends differently from its plan rolls the restore back", arguments: ExistingItemPolicy.allCases)
  func outcomes(_ policy: ExistingItemPolicy) throws {
    let halfway = try PendingRestore()
    let whole = try Restorer.plan(halfway.archive, onto: halfway.session, policy: policy)
    #expect(whole.imports.count == (policy == .replace ? 7 : 6))
    for index in whole.imports.indices {
      var imports = whole.imports
      imports[index] = .init(origin: imports[index].origin, outcome: .keepsExisting(.incomingUndated))
      let error = try migrationError { try Restorer.restore(plan(whole, imports: imports), onto: halfway.session) }
      #expect(error?.code == .stalePlan)
      #expect(error?.category == .stalePlan)
      try halfway.expectUnchanged()
    }
    try Restorer.restore(whole, onto: halfway.session)
    #expect(try KeychainSnapshot(halfway.session).rows.count == (policy == .replace ? 7 : 8))
  }

  @Test("A different number of removed rows rolls the restore back")
  func removals() throws {
    let halfway = try PendingRestore()
    let whole = try Restorer.plan(halfway.archive, onto: halfway.session, policy: .replace)
    for count in [0, 2, 4] {
      let error = try migrationError { try Restorer.restore(plan(whole, cleared: count), onto: halfway.session) }
      #expect(error?.code == .stalePlan)
      #expect(error?.reason == "3 items would be removed, but the plan says \(count)")
      try halfway.expectUnchanged()
    }
  }

  @Test("A database error in the middle of a restore changes nothing")
  func failure() throws {
    let halfway = try PendingRestore()
    let whole = try Restorer.plan(halfway.archive, onto: halfway.session, policy: .replace)
    try KeychainSnapshot.execute(
      """
      CREATE TRIGGER fail BEFORE INSERT ON genp WHEN (SELECT count(*) FROM genp) = 3
      BEGIN SELECT RAISE(ABORT, 'no'); END
      """, on: halfway.session.device)
    let error = try migrationError { try Restorer.restore(whole, onto: halfway.session) }
    #expect(error?.code == .storeDamaged)
    try halfway.expectUnchanged()
  }

  @Test(
    "A canceled restore is rolled back",
    arguments: ExistingItemPolicy.allCases, [0, 4])
  func stopped(_ policy: ExistingItemPolicy, after count: Int) throws {
    let halfway = try PendingRestore()
    halfway.session.invalidate()
    let (budget, setup) = (CheckBudget(), try #require(halfway.setup))
    let environment = DeviceEnvironment(
      clock: DeviceClock(now: { TestSetup.now }, sleep: { _ in }, shouldContinue: { budget.useCheck() }),
      random: SeededRandomSource(seed: "stopped"), passcodeRounds: 2)
    let session = try DeviceSet(path: setup.home.path, environment: environment).device(DeviceName("target"))
      .openTestSession()
    let plan = try Restorer.plan(halfway.archive, onto: session, policy: policy)
    budget.reset(to: count)
    let error = try migrationError { try Restorer.restore(plan, onto: session) }
    #expect(error?.isCancelled == true && error?.category == .failed, "\(String(describing: error))")
    budget.reset(to: .max)
    session.invalidate()
    try halfway.expectUnchanged()
  }

  @Test("A phone that has changed since the plan is not changed", arguments: ExistingItemPolicy.allCases)
  func changed(_ policy: ExistingItemPolicy) throws {
    let halfway = try PendingRestore()
    let whole = try Restorer.plan(halfway.archive, onto: halfway.session, policy: policy)
    let revision = halfway.session.record.revision
    try halfway.session.insertUnchanged(.password("arriving 3").with(secret: "another").dated(9000))
    #expect(halfway.session.record.revision != revision)
    let before = try KeychainSnapshot(halfway.session).image
    let error = try migrationError { try Restorer.restore(whole, onto: halfway.session) }
    #expect(error?.code == .stalePlan)
    #expect(try KeychainSnapshot(halfway.session).image == before)
  }

  @Test(
    "A plan without imports has the same decisions and cannot be carried out",
    arguments: [BackupPurpose.planning, .reading])
  func lookedAt(_ use: BackupPurpose) throws {
    let halfway = try PendingRestore()
    let whole = try Restorer.plan(halfway.archive, onto: halfway.session, policy: .replace)
    let shown = try Restorer.plan(halfway.archive, onto: halfway.session, policy: .replace, for: use)
    #expect(shown.decisions.map(\.outcome) == whole.decisions.map(\.outcome) && shown.removed == whole.removed)
    let revision = halfway.session.record.revision
    let error = try migrationError { try Restorer.restore(shown, onto: halfway.session) }
    #expect(error?.code == .planToLookAt && error?.category == .usage)
    #expect(halfway.session.record.revision == revision)
    try halfway.expectUnchanged()
  }

  @Test("A restore increases the revision, and a plan does not")
  func revision() throws {
    let halfway = try PendingRestore()
    let revision = halfway.session.record.revision
    let whole = try Restorer.plan(halfway.archive, onto: halfway.session, policy: .merge)
    #expect(halfway.session.record.revision == revision)
    try Restorer.restore(whole, onto: halfway.session)
    #expect(halfway.session.record.revision != revision)
  }

  @Test("A phone in a reading session can be planned for, but a restore is refused")
  func reading() throws {
    let halfway = try PendingRestore()
    halfway.session.invalidate()
    let session = try halfway.session.device.openTestSession(.reading)
    let plan = try Restorer.plan(halfway.archive, onto: session, policy: .replace)
    #expect(plan.summary.migrates == 6)
    let error = try migrationError { try Restorer.restore(plan, onto: session) }
    #expect(error?.code == .deviceNotWritable)
    try halfway.expectUnchanged()
  }

  @Test(
    "The plan counts removed rows correctly, even if their columns were changed",
    arguments: [
      "ggrp = NULL", "ggrp = x''", "ggrp = 'g'", "sync = 'x'", "sync = 2", "agrp = x'00'", "musr = x'00'", "tomb = 1",
      "agrp = 'com.apple.security.ckks'", "data = x''", "sha1 = NULL", "pdmn = NULL",
    ])
  func changedColumns(_ change: String) throws {
    let halfway = try PendingRestore()
    try KeychainSnapshot.execute(
      "UPDATE genp SET \(change) WHERE acct = (SELECT acct FROM genp WHERE rowid = 2)",
      on: halfway.session.device)
    let plan = try Restorer.plan(halfway.archive, onto: halfway.session, policy: .replace)
    try Restorer.restore(plan, onto: halfway.session)
    let stays =
      ["ggrp = NULL", "ggrp = x''", "ggrp = 'g'", "sync = 'x'", "sync = 2"].contains(change)
      || change.hasSuffix("ckks'")
    #expect(try KeychainSnapshot(halfway.session).item("resident") == nil || stays)
    #expect(try KeychainSnapshot(halfway.session).rows.count == (stays ? 8 : 7))
    // Only the tombstone flag in the encrypted item counts, not the one in the column.
    #expect(plan.removed.isEmpty == stays, "\(plan.removed)")
  }

  @Test("Only the selected items are restored")
  func only() throws {
    let halfway = try PendingRestore()
    let plan = try halfway.session.restore(halfway.archive, policy: .merge, only: [1, 4])
    #expect(plan.decisions.map(\.index) == [1, 4])
    let accounts = Set(try KeychainSnapshot(halfway.session).items.compactMap { $0[.account]?.stringValue })
    #expect(accounts == ["both", "resident", "own", "arriving 1", "arriving 4"])
  }
}
