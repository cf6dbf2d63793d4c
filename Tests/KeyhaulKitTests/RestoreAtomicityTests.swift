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
  /// A phone with 3 items, and a backup of another phone with 6 items that can all be restored to it.
  ///
  /// The item "both" is on the phone and, newer, in the backup. The item "own" belongs to the phone's system.
  ///
  /// - A restore that keeps the phone's items makes 6 imports. The phone then has 8 items.
  /// - A restore that replaces the phone's items removes all 3. It makes 7 imports, because it puts "own" back. The phone
  ///   then has 7 items.
  private struct PendingRestore {
    let setup: TestSetup
    let session: DeviceSession
    let unlocked: UnlockedBackup
    let before: [[String: AnyHashable]]

    init() throws {
      let setup = try TestSetup(seed: "halfway")
      self.setup = setup
      let source = try setup.phone("source")
      let sourceSession = try source.openTestSession()
      try sourceSession.insertUnchanged((0..<5).map { .password("arriving \($0)") } + [.password("both").dated(2000)])
      sourceSession.invalidate()
      session = try setup.phone("target").openTestSession()
      try session.insertUnchanged(
        .password("both"), .password("resident"), .password("own", attributes: [.systemBound: .integer(1)]))
      unlocked = try setup.open(
        try setup.backUp(source, password: TestSetup.password), password: TestSetup.password, on: session)
      before = try KeychainSnapshot(session).columnsOfRows.map { $0.mapValues { $0 as AnyHashable } }
    }

    func expectUnchanged() throws {
      #expect(try KeychainSnapshot(session).columnsOfRows.map { $0.mapValues { $0 as AnyHashable } } == before)
    }
  }

  @Test(
    "A restore is rolled back if an import has another outcome than planned", arguments: ExistingItemPolicy.allCases)
  func outcomes(_ policy: ExistingItemPolicy) throws {
    let pending = try PendingRestore()
    let fullPlan = try Restorer.plan(pending.unlocked, onto: pending.session, policy: policy)
    #expect(fullPlan.imports.count == (policy == .replace ? 7 : 6))
    for index in fullPlan.imports.indices {
      var imports = fullPlan.imports
      imports[index] = .init(origin: imports[index].origin, outcome: .keepsExisting(.incomingUndated))
      let changedPlan = MigrationPlan(fullPlan, imports: imports)
      let error = try keyhaulError { try Restorer.restore(changedPlan, onto: pending.session) }
      #expect(error?.code == .stalePlan)
      #expect(error?.category == .stalePlan)
      try pending.expectUnchanged()
    }
    try Restorer.restore(fullPlan, onto: pending.session)
    #expect(try KeychainSnapshot(pending.session).rows.count == (policy == .replace ? 7 : 8))
  }

  @Test("A restore is rolled back if it removes a different number of rows than planned")
  func removals() throws {
    let pending = try PendingRestore()
    let fullPlan = try Restorer.plan(pending.unlocked, onto: pending.session, policy: .replace)
    for count in [0, 2, 4] {
      let changedPlan = MigrationPlan(fullPlan, removedRowCount: count)
      let error = try keyhaulError { try Restorer.restore(changedPlan, onto: pending.session) }
      #expect(error?.code == .stalePlan)
      #expect(error?.reason == "3 items would be removed, but the plan says \(count)")
      try pending.expectUnchanged()
    }
  }

  @Test("A database error in the middle of a restore changes nothing")
  func failure() throws {
    let pending = try PendingRestore()
    let fullPlan = try Restorer.plan(pending.unlocked, onto: pending.session, policy: .replace)
    // All rows have been removed before the imports, so the fourth import fails.
    try KeychainSnapshot.execute(
      """
      CREATE TRIGGER fail BEFORE INSERT ON genp WHEN (SELECT count(*) FROM genp) = 3
      BEGIN SELECT RAISE(ABORT, 'no'); END
      """, on: pending.session.device)
    let error = try keyhaulError { try Restorer.restore(fullPlan, onto: pending.session) }
    #expect(error?.code == .storeDamaged)
    try pending.expectUnchanged()
  }

  @Test(
    "A canceled restore is rolled back",
    arguments: ExistingItemPolicy.allCases, [0, 4])
  func stopped(_ policy: ExistingItemPolicy, after count: Int) throws {
    let pending = try PendingRestore()
    pending.session.invalidate()
    let (budget, setup) = (CheckBudget(), pending.setup)
    let environment = DeviceEnvironment(
      clock: DeviceClock(now: { TestSetup.now }, sleep: { _ in }, shouldContinue: { budget.useCheck() }),
      random: SeededRandomSource(seed: "stopped"), passcodeRounds: 2)
    let session = try DeviceSet(path: setup.home.path, environment: environment).device(DeviceName("target"))
      .openTestSession()
    let plan = try Restorer.plan(pending.unlocked, onto: session, policy: policy)
    // The clock cancels the restore after this many checks.
    budget.reset(to: count)
    let error = try keyhaulError { try Restorer.restore(plan, onto: session) }
    #expect(error?.isCancelled == true && error?.category == .failed, "\(String(describing: error))")
    budget.reset(to: .max)
    session.invalidate()
    try pending.expectUnchanged()
  }

  @Test("A restore changes nothing if the phone has changed since the plan", arguments: ExistingItemPolicy.allCases)
  func changed(_ policy: ExistingItemPolicy) throws {
    let pending = try PendingRestore()
    let fullPlan = try Restorer.plan(pending.unlocked, onto: pending.session, policy: policy)
    let revision = pending.session.record.revision
    try pending.session.insertUnchanged(.password("arriving 3").with(secret: "another").dated(9000))
    #expect(pending.session.record.revision != revision)
    let before = try KeychainSnapshot(pending.session).columnsOfRows
    let error = try keyhaulError { try Restorer.restore(fullPlan, onto: pending.session) }
    #expect(error?.code == .stalePlan)
    #expect(try KeychainSnapshot(pending.session).columnsOfRows == before)
  }

  @Test(
    "A plan without imports has the same decisions and cannot be carried out",
    arguments: [BackupPurpose.planning, .reading])
  func withoutImports(_ purpose: BackupPurpose) throws {
    let pending = try PendingRestore()
    let fullPlan = try Restorer.plan(pending.unlocked, onto: pending.session, policy: .replace)
    let planWithoutImports = try Restorer.plan(pending.unlocked, onto: pending.session, policy: .replace, for: purpose)
    #expect(
      planWithoutImports.decisions.map(\.outcome) == fullPlan.decisions.map(\.outcome)
        && planWithoutImports.removed == fullPlan.removed)
    let revision = pending.session.record.revision
    let error = try keyhaulError { try Restorer.restore(planWithoutImports, onto: pending.session) }
    #expect(error?.code == .displayOnlyPlan && error?.category == .usage)
    #expect(pending.session.record.revision == revision)
    try pending.expectUnchanged()
  }

  @Test("A restore increases the revision, and a plan does not")
  func revision() throws {
    let pending = try PendingRestore()
    let revision = pending.session.record.revision
    let fullPlan = try Restorer.plan(pending.unlocked, onto: pending.session, policy: .merge)
    #expect(pending.session.record.revision == revision)
    try Restorer.restore(fullPlan, onto: pending.session)
    #expect(pending.session.record.revision != revision)
  }

  @Test("In a read-only session, a restore can be planned but not carried out")
  func reading() throws {
    let pending = try PendingRestore()
    pending.session.invalidate()
    let session = try pending.session.device.openTestSession(.reading)
    let plan = try Restorer.plan(pending.unlocked, onto: session, policy: .replace)
    #expect(plan.summary.migrates == 6)
    let error = try keyhaulError { try Restorer.restore(plan, onto: session) }
    #expect(error?.code == .deviceNotWritable)
    try pending.expectUnchanged()
  }

  @Test(
    "The plan counts removed rows correctly, even if their columns were changed",
    arguments: [
      "ggrp = NULL", "ggrp = x''", "ggrp = 'g'", "sync = 'x'", "sync = 2", "agrp = x'00'", "musr = x'00'",
      // Only the tombstone flag in the encrypted item counts, not this column.
      "tomb = 1", "agrp = 'com.apple.security.ckks'", "data = x''", "sha1 = NULL", "pdmn = NULL",
    ])
  func changedColumns(_ change: String) throws {
    let pending = try PendingRestore()
    // Row 2 is the item "resident".
    try KeychainSnapshot.execute(
      "UPDATE genp SET \(change) WHERE acct = (SELECT acct FROM genp WHERE rowid = 2)",
      on: pending.session.device)
    let plan = try Restorer.plan(pending.unlocked, onto: pending.session, policy: .replace)
    try Restorer.restore(plan, onto: pending.session)
    let stays = [
      "ggrp = NULL", "ggrp = x''", "ggrp = 'g'", "sync = 'x'", "sync = 2", "agrp = 'com.apple.security.ckks'",
    ].contains(change)
    let after = try KeychainSnapshot(pending.session)
    #expect((after.item("resident") != nil) == stays)
    #expect(after.rows.count == (stays ? 8 : 7))
    #expect(plan.removed.isEmpty == stays, "\(plan.removed)")
  }

  @Test("Only the selected items are restored")
  func only() throws {
    let pending = try PendingRestore()
    let plan = try pending.session.restore(pending.unlocked, policy: .merge, only: [1, 4])
    #expect(plan.decisions.map(\.index) == [1, 4])
    let accounts = Set(try KeychainSnapshot(pending.session).items.compactMap { $0[.account]?.stringValue })
    #expect(accounts == ["both", "resident", "own", "arriving 1", "arriving 4"])
  }
}
