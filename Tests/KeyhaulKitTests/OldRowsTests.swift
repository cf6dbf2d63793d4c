import Backups
import GRDB
import KeychainCrypto
import KeychainFormats
import Testing
import VirtualDevice

@testable import KeyhaulKit

@Suite("A device whose rows hold empty data as the first versions wrote it")
struct OldRowsTests {
  /// What `typeof` says of the rows' users, by raw SQL.
  private func forms(_ device: VirtualDevice) throws -> Set<String> {
    Set(
      try HeldKeychain.queue(of: device).read { database in
        try String.fetchAll(database, sql: "SELECT DISTINCT typeof(musr) FROM genp")
      })
  }

  @Test("keeps its revision and the plans made before, once they are put right", arguments: ["replace", "merge"])
  func plan(policy: String) throws {
    let policy = try #require(ExistingItemPolicy(rawValue: policy))
    let desk = try Desk(seed: "old rows")
    defer { withExtendedLifetime(desk) {} }
    let source = try desk.phone("source")
    let first = try source.held()
    try first.plant([.password("arriving"), .password("both").dated(2000)])
    first.invalidate()
    let session = try desk.phone("target").held()
    try session.plant(.password("both"), .password("resident"))
    let archive = try desk.open(
      try desk.backUp(source, password: Desk.password), password: Desk.password, on: session)
    let device = session.device
    let expected = try Restorer.plan(archive, onto: session, policy: policy)
    session.invalidate()
    try HeldKeychain.execute("UPDATE genp SET musr = x''", on: device)

    let reading = try device.held(.reading)
    let revision = reading.record.revision
    let plan = try Restorer.plan(archive, onto: reading, policy: policy)
    reading.invalidate()
    #expect(try forms(device) == ["blob"])
    #expect(plan.decisions.map(\.outcome) == expected.decisions.map(\.outcome) && plan.removed == expected.removed)

    let writing = try device.held()
    #expect(try writing.itemCount == 2)
    #expect(try forms(device) == ["text"])
    #expect(writing.record.revision == revision)
    try Restorer.restore(plan, onto: writing)
    #expect(try HeldKeychain(writing).rows.count == (policy == .replace ? 2 : 3))
    #expect(try forms(device) == ["text"])
  }
}
