import Backups
import Foundation
import KeychainCrypto
import KeychainFormats
import Testing
import VirtualDevice

@testable import KeyhaulKit

@Suite("The same backup merged a second time")
struct RestoredAgainTests {
  private let desk: Desk
  private let target: VirtualDevice
  private let path: String

  init() throws {
    desk = try Desk(seed: "again")
    let source = try desk.phone("source")
    target = try desk.phone("target")
    try source.withSession(.writing, verb: "test") { (session) throws(KeyhaulError) in
      for item in ["a", "b", "c"] { _ = try session.add(KeychainItem.password(item)) }
    }
    path = try desk.backUp(source, password: Desk.password)
  }

  private func files() throws -> [String: Data] {
    let names = try FileManager.default.contentsOfDirectory(atPath: target.directory).filter { $0 != "lock" }
    return try Dictionary(
      uniqueKeysWithValues: names.map { ($0, try Data(contentsOf: URL(filePath: "\(target.directory)/\($0)"))) })
  }

  /// Merges in a session of its own, as a process does.
  private func merge() throws -> MigrationPlan {
    let session = try target.held()
    let plan = try session.restore(
      try desk.open(path, password: Desk.password, on: session), policy: .merge)
    try session.close()
    return plan
  }

  @Test("changes nothing: no date, no row, no revision, no byte of the device's files")
  func unchanged() throws {
    #expect(try !merge().changesNothing)
    let before = try files()
    for _ in 0..<2 {
      let again = try merge()
      #expect(again.changesNothing && again.summary.byChange == [.identical: 3])
      #expect(try files() == before)
    }
  }

  @Test("leaves an item that is newer there as it is, and it alone is no reason to write")
  func newer() throws {
    let session = try target.held()
    try session.plant(.password("a", at: 9e8).holding("newer"))
    try session.close()
    #expect(try !merge().changesNothing)
    let before = try files()
    let again = try merge()
    #expect(again.changesNothing && again.summary.byChange == [.identical: 2, .keepsExisting: 1])
    #expect(try files() == before)
    #expect(try HeldKeychain(try target.held()).item("a")?.modificationDate?.secondsSinceReferenceDate == 9e8)
  }

  @Test("writes what is missing and no row besides")
  func mixed() throws {
    _ = try merge()
    try HeldKeychain.execute("DELETE FROM genp WHERE rowid = 2", on: target)
    let before = try HeldKeychain(try target.held()).image
    let again = try merge()
    #expect(!again.changesNothing && again.summary.byChange == [.identical: 2, .new: 1])
    let after = try HeldKeychain(try target.held()).image
    #expect(after.count == 3 && before.allSatisfy { row in after.contains(row) })
  }

  @Test("is refused where the target has changed since the plan")
  func stale() throws {
    _ = try merge()
    let session = try target.held()
    let plan = try Restorer.plan(
      try desk.open(path, password: Desk.password, on: session), onto: session, policy: .merge)
    #expect(plan.changesNothing)
    try HeldKeychain.execute("DELETE FROM genp WHERE rowid = 2", on: target)
    #expect(try migrationError { try Restorer.restore(plan, onto: session) }?.code == .stalePlan)
  }

  @Test("with a session that only reads is refused all the same")
  func reading() throws {
    _ = try merge()
    let session = try target.held(.reading)
    let plan = try Restorer.plan(
      try desk.open(path, password: Desk.password, on: session), onto: session, policy: .merge)
    #expect(try migrationError { try Restorer.restore(plan, onto: session) }?.code == .deviceNotWritable)
  }
}
