import Backups
import KeychainCrypto
import KeychainFormats
import KeychainRules
import TestSupport
import Testing
import VirtualDevice

@testable import KeyhaulKit

@Suite("A restore that cannot end as planned")
struct WholeOrNothing {
  private struct Halfway {
    let desk = try? Desk(seed: "halfway")
    let session: DeviceSession
    let archive: UnlockedBackup
    let before: [[String: AnyHashable]]

    init() throws {
      let desk = try #require(desk)
      let source = try desk.phone("source")
      let first = try source.held()
      try first.plant((0..<5).map { .password("arriving \($0)") } + [.password("both").dated(2000)])
      first.invalidate()
      session = try desk.phone("target").held()
      try session.plant(
        .password("both"), .password("resident"), .password("own", marks: [.systemBound: .integer(1)]))
      archive = try desk.open(try desk.backUp(source, password: Desk.password), password: Desk.password, on: session)
      before = try HeldKeychain(session).image.map { $0.mapValues { $0 as AnyHashable } }
    }

    func expectUnchanged() throws {
      #expect(try HeldKeychain(session).image.map { $0.mapValues { $0 as AnyHashable } } == before)
    }
  }

  private func plan(
    _ plan: MigrationPlan, imports: [MigrationPlan.PlannedImport]? = nil, cleared: Int? = nil
  ) -> MigrationPlan {
    MigrationPlan(plan, imports: imports, removedRowCount: cleared)
  }

  @Test("each import that would end differently takes everything back", arguments: ExistingItemPolicy.allCases)
  func outcomes(_ policy: ExistingItemPolicy) throws {
    let halfway = try Halfway()
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
    #expect(try HeldKeychain(halfway.session).rows.count == (policy == .replace ? 7 : 8))
  }

  @Test("another number of removed rows takes everything back")
  func removals() throws {
    let halfway = try Halfway()
    let whole = try Restorer.plan(halfway.archive, onto: halfway.session, policy: .replace)
    for count in [0, 2, 4] {
      let error = try migrationError { try Restorer.restore(plan(whole, cleared: count), onto: halfway.session) }
      #expect(error?.code == .stalePlan)
      #expect(error?.reason == "3 items would be removed, but the plan says \(count)")
      try halfway.expectUnchanged()
    }
  }

  @Test("a database that fails in the middle is as before")
  func failure() throws {
    let halfway = try Halfway()
    let whole = try Restorer.plan(halfway.archive, onto: halfway.session, policy: .replace)
    try HeldKeychain.execute(
      """
      CREATE TRIGGER fail BEFORE INSERT ON genp WHEN (SELECT count(*) FROM genp) = 3
      BEGIN SELECT RAISE(ABORT, 'no'); END
      """, on: halfway.session.device)
    let error = try migrationError { try Restorer.restore(whole, onto: halfway.session) }
    #expect(error?.code == .storeDamaged)
    try halfway.expectUnchanged()
  }

  @Test(
    "a restore that nobody waits for any more takes everything back",
    arguments: ExistingItemPolicy.allCases, [0, 4])
  func stopped(_ policy: ExistingItemPolicy, after count: Int) throws {
    let halfway = try Halfway()
    halfway.session.invalidate()
    let (patience, desk) = (Patience(), try #require(halfway.desk))
    let environment = DeviceEnvironment(
      clock: DeviceClock(now: { Desk.now }, sleep: { _ in }, shouldContinue: { patience.holds }),
      random: SeededRandomSource(seed: "stopped"), passcodeRounds: 2)
    let session = try DeviceSet(path: desk.home.path, environment: environment).device(DeviceName("target")).held()
    let plan = try Restorer.plan(halfway.archive, onto: session, policy: policy)
    patience.end(after: count)
    let error = try migrationError { try Restorer.restore(plan, onto: session) }
    #expect(error?.isCancelled == true && error?.category == .failed, "\(String(describing: error))")
    patience.end(after: .max)
    session.invalidate()
    try halfway.expectUnchanged()
  }

  @Test("a phone that changed since the plan is left alone", arguments: ExistingItemPolicy.allCases)
  func changed(_ policy: ExistingItemPolicy) throws {
    let halfway = try Halfway()
    let whole = try Restorer.plan(halfway.archive, onto: halfway.session, policy: policy)
    let revision = halfway.session.record.revision
    try halfway.session.plant(.password("arriving 3").holding("another").dated(9000))
    #expect(halfway.session.record.revision != revision)
    let before = try HeldKeychain(halfway.session).image
    let error = try migrationError { try Restorer.restore(whole, onto: halfway.session) }
    #expect(error?.code == .stalePlan)
    #expect(try HeldKeychain(halfway.session).image == before)
  }

  @Test(
    "a plan that was made to be looked at says the same, and is not carried out",
    arguments: [BackupPurpose.planning, .reading])
  func lookedAt(_ use: BackupPurpose) throws {
    let halfway = try Halfway()
    let whole = try Restorer.plan(halfway.archive, onto: halfway.session, policy: .replace)
    let shown = try Restorer.plan(halfway.archive, onto: halfway.session, policy: .replace, for: use)
    #expect(shown.decisions.map(\.outcome) == whole.decisions.map(\.outcome) && shown.removed == whole.removed)
    let revision = halfway.session.record.revision
    let error = try migrationError { try Restorer.restore(shown, onto: halfway.session) }
    #expect(error?.code == .planToLookAt && error?.category == .usage)
    #expect(halfway.session.record.revision == revision)
    try halfway.expectUnchanged()
  }

  @Test("a restore raises the revision, so that an older plan is known to be old; a plan does not")
  func revision() throws {
    let halfway = try Halfway()
    let revision = halfway.session.record.revision
    let whole = try Restorer.plan(halfway.archive, onto: halfway.session, policy: .merge)
    #expect(halfway.session.record.revision == revision)
    try Restorer.restore(whole, onto: halfway.session)
    #expect(halfway.session.record.revision != revision)
  }

  @Test("a phone that is only read can be planned for; restoring to it is refused")
  func reading() throws {
    let halfway = try Halfway()
    halfway.session.invalidate()
    let session = try halfway.session.device.held(.reading)
    let plan = try Restorer.plan(halfway.archive, onto: session, policy: .replace)
    #expect(plan.summary.migrates == 6)
    let error = try migrationError { try Restorer.restore(plan, onto: session) }
    #expect(error?.code == .deviceNotWritable)
    try halfway.expectUnchanged()
  }

  @Test(
    "rows whose columns someone changed: what is removed is still what the plan counts",
    arguments: [
      "ggrp = NULL", "ggrp = x''", "ggrp = 'g'", "sync = 'x'", "sync = 2", "agrp = x'00'", "musr = x'00'", "tomb = 1",
      "agrp = 'com.apple.security.ckks'", "data = x''", "sha1 = NULL", "pdmn = NULL",
    ])
  func changedColumns(_ change: String) throws {
    let halfway = try Halfway()
    try HeldKeychain.execute(
      "UPDATE genp SET \(change) WHERE acct = (SELECT acct FROM genp WHERE rowid = 2)",
      on: halfway.session.device)
    let plan = try Restorer.plan(halfway.archive, onto: halfway.session, policy: .replace)
    try Restorer.restore(plan, onto: halfway.session)
    let stays =
      ["ggrp = NULL", "ggrp = x''", "ggrp = 'g'", "sync = 'x'", "sync = 2"].contains(change)
      || change.hasSuffix("ckks'")
    #expect(try HeldKeychain(halfway.session).item("resident") == nil || stays)
    #expect(try HeldKeychain(halfway.session).rows.count == (stays ? 8 : 7))
    // The mark of a tombstone counts where it is sealed, not in a column.
    #expect(plan.removed.isEmpty == stays, "\(plan.removed)")
  }

  @Test("only the items that were asked for arrive")
  func only() throws {
    let halfway = try Halfway()
    let plan = try halfway.session.restore(halfway.archive, policy: .merge, only: [1, 4])
    #expect(plan.decisions.map(\.index) == [1, 4])
    let accounts = Set(try HeldKeychain(halfway.session).items.compactMap { $0[.account]?.stringValue })
    #expect(accounts == ["both", "resident", "own", "arriving 1", "arriving 4"])
  }
}
