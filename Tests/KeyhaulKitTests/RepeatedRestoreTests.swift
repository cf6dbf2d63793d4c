import Backups
import Foundation
import KeychainCrypto
import KeychainFormats
import Testing
import VirtualDevice

@testable import KeyhaulKit

@Suite("Merging a backup repeatedly")
struct RepeatedRestoreTests {
  private let setup: TestSetup
  private let target: VirtualDevice
  private let path: String

  init() throws {
    setup = try TestSetup(seed: "again")
    let source = try setup.phone("source")
    target = try setup.phone("target")
    try source.withSession(.writing, verb: "test") { (session) throws(KeyhaulError) in
      for item in ["a", "b", "c"] { _ = try session.add(KeychainItem.password(item)) }
    }
    path = try setup.backUp(source, password: TestSetup.password)
  }

  private func files() throws -> [String: Data] {
    let names = try FileManager.default.contentsOfDirectory(atPath: target.directory).filter { $0 != "lock" }
    return try Dictionary(
      uniqueKeysWithValues: names.map { ($0, try Data(contentsOf: URL(filePath: "\(target.directory)/\($0)"))) })
  }

  /// Merges in a new session, as a separate process would.
  private func merge() throws -> MigrationPlan {
    let session = try target.openTestSession()
    let plan = try session.restore(
      try setup.open(path, password: TestSetup.password, on: session), policy: .merge)
    try session.close()
    return plan
  }

  @Test("A repeated merge changes no date, row, revision or byte of the device's files")
  func unchanged() throws {
    #expect(try !merge().changesNothing)
    let before = try files()
    for _ in 0..<2 {
      let repeated = try merge()
      #expect(repeated.changesNothing && repeated.summary.byChange == [.identical: 3])
      #expect(try files() == before)
    }
  }

  @Test("A repeated merge keeps a newer item on the target and writes nothing")
  func newer() throws {
    let session = try target.openTestSession()
    try session.insertUnchanged(.password("a", at: 9e8).with(secret: "newer"))
    try session.close()
    #expect(try !merge().changesNothing)
    let before = try files()
    let repeated = try merge()
    #expect(repeated.changesNothing && repeated.summary.byChange == [.identical: 2, .keepsExisting: 1])
    #expect(try files() == before)
    #expect(
      try KeychainSnapshot(try target.openTestSession()).item("a")?.modificationDate?.secondsSinceReferenceDate == 9e8)
  }

  @Test("A repeated merge writes only missing items")
  func mixed() throws {
    _ = try merge()
    try KeychainSnapshot.execute("DELETE FROM genp WHERE rowid = 2", on: target)
    let before = try KeychainSnapshot(try target.openTestSession()).columnsOfRows
    let repeated = try merge()
    #expect(!repeated.changesNothing && repeated.summary.byChange == [.identical: 2, .new: 1])
    let after = try KeychainSnapshot(try target.openTestSession()).columnsOfRows
    #expect(after.count == 3 && before.allSatisfy { row in after.contains(row) })
  }

  @Test("A repeated merge is refused if the target has changed since the plan")
  func stale() throws {
    _ = try merge()
    let session = try target.openTestSession()
    let plan = try Restorer.plan(
      try setup.open(path, password: TestSetup.password, on: session), onto: session, policy: .merge)
    #expect(plan.changesNothing)
    try KeychainSnapshot.execute("DELETE FROM genp WHERE rowid = 2", on: target)
    #expect(try keyhaulError { try Restorer.restore(plan, onto: session) }?.code == .stalePlan)
  }

  @Test("A repeated merge is refused in a read-only session")
  func reading() throws {
    _ = try merge()
    let session = try target.openTestSession(.reading)
    let plan = try Restorer.plan(
      try setup.open(path, password: TestSetup.password, on: session), onto: session, policy: .merge)
    #expect(try keyhaulError { try Restorer.restore(plan, onto: session) }?.code == .deviceNotWritable)
  }
}
