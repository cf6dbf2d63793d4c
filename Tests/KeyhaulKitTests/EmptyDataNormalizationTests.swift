import Backups
import GRDB
import KeychainCrypto
import KeychainFormats
import Testing
import VirtualDevice

@testable import KeyhaulKit

@Suite("Device rows with empty data from early versions")
struct EmptyDataNormalizationTests {
  /// Returns the SQLite types of the rows' `musr` columns, by raw SQL.
  private func storageTypes(on device: VirtualDevice) throws -> Set<String> {
    Set(
      try KeychainSnapshot.queue(of: device).read { database in
        try String.fetchAll(database, sql: "SELECT DISTINCT typeof(musr) FROM genp")
      })
  }

  @Test("Normalizing empty data keeps the revision and earlier plans", arguments: ["replace", "merge"])
  func plan(policy: String) throws {
    let policy = try #require(ExistingItemPolicy(rawValue: policy))
    let setup = try TestSetup(seed: "old rows")
    defer { withExtendedLifetime(setup) {} }
    let source = try setup.phone("source")
    let sourceSession = try source.openTestSession()
    try sourceSession.insertUnchanged([.password("arriving"), .password("both").dated(2000)])
    sourceSession.invalidate()
    let session = try setup.phone("target").openTestSession()
    try session.insertUnchanged(.password("both"), .password("resident"))
    let unlocked = try setup.open(
      try setup.backUp(source, password: TestSetup.password), password: TestSetup.password, on: session)
    let device = session.device
    let earlierPlan = try Restorer.plan(unlocked, onto: session, policy: policy)
    session.invalidate()
    try KeychainSnapshot.execute("UPDATE genp SET musr = x''", on: device)

    let reading = try device.openTestSession(.reading)
    let revision = reading.record.revision
    let plan = try Restorer.plan(unlocked, onto: reading, policy: policy)
    reading.invalidate()
    #expect(try storageTypes(on: device) == ["blob"])
    #expect(plan.decisions.map(\.outcome) == earlierPlan.decisions.map(\.outcome))
    #expect(plan.removed == earlierPlan.removed)

    let writing = try device.openTestSession()
    #expect(try writing.itemCount == 2)
    #expect(try storageTypes(on: device) == ["text"])
    #expect(writing.record.revision == revision)
    try Restorer.restore(plan, onto: writing)
    #expect(try KeychainSnapshot(writing).rows.count == (policy == .replace ? 2 : 3))
    #expect(try storageTypes(on: device) == ["text"])
  }
}
