import Backups
import Foundation
import KeychainCrypto
import KeychainFormats
import KeychainRules
import TestSupport
import Testing
import VirtualDevice

@testable import KeyhaulKit

/// The contents of backups and targets, by name. Both use the same accounts, so that items conflict.
private enum SampleContents {
  static let sos = "com.apple.security.sos"
  static let ckks = "com.apple.security.ckks"

  static let plain = ProtectionClass.allCases.filter { $0 != .whenPasscodeSetThisDeviceOnly }.map {
    KeychainItem.password($0.rawValue, $0)
  }
  static let older = plain.map { $0.with(secret: "older").dated(900) }
  static let newer = plain.map { $0.with(secret: "newer").dated(1100) }
  static let otherSecret = plain.map { $0.with(secret: "rival") }
  static let synced = plain.prefix(3).map { $0.with([.synchronizable: .integer(1)]) }
  static let syncedNewer = synced.map { $0.with(secret: "newer").dated(1100) }
  static let tombstones = synced.map { item in
    var item = item.with([
      .tombstone: .integer(1), .uuid: .string("00000000-0000-4000-8000-000000000000"),
      .persistentReference: .data([UInt8](repeating: 0xAB, count: 16)),
    ]).dated(1050)
    item.secret = nil
    return item
  }
  static let systemBound: [KeychainItem] = [
    .password("own", group: sos), .password("identity", group: "lockdown-identities"),
    .password("marked", attributes: [.systemBound: .integer(1)]),
    .password("unmarked", attributes: [.systemBound: .integer(0)]),
    .password("Public", service: "com.apple.managedconfiguration", group: "apple"),
  ]
  /// Items with the primary keys of `systemBound` and the opposite flag.
  static let systemUnbound: [KeychainItem] = [
    .password("own", group: sos, attributes: [.systemBound: .integer(0)]).with(secret: "unbound").dated(1100),
    .password("identity", group: "lockdown-identities", attributes: [.systemBound: .integer(0)]).dated(900),
    .password("marked").with(secret: "unbound").dated(1100),
    .password("unmarked", attributes: [.systemBound: .integer(1)]).with(secret: "bound"),
    .password(
      "Public", service: "com.apple.managedconfiguration", group: "apple", attributes: [.systemBound: .integer(0)]),
  ]
  static let protected: [KeychainItem] = [
    .password("a", group: ckks), .password("b", group: "com.apple.security.octagon", at: 1100),
    .password("c", group: "com.apple.security.egoIdentities"),
  ]
  static let protectedNewer = protected.map { $0.with(secret: "newer").dated(1200) }
  static let safari = ["anna", "ben"].map { KeychainItem.oldSafariPassword($0) }
  static let safariSynced = safari.map { $0.with([.synchronizable: .integer(1)]).with(secret: "synced").dated(1100) }
  static let excluded: [KeychainItem] = [
    .password("token", attributes: [.tokenID: .string("com.apple.setoken")]),
    .password("shared", attributes: [.sharingGroup: .string("g")]),
    .password("passcode", .whenPasscodeSetThisDeviceOnly),
    .password("guarded", attributes: [.accessControl: .dictionary(["od": .string("cpo")])]), .password("ordinary"),
  ]
  static let duplicates: [KeychainItem] =
    [1000, 1100, 1200].map { .password("up", at: $0).with(secret: "up \($0)") }
    + [1200, 1100, 1000].map { .password("down", at: $0).with(secret: "down \($0)") }
    + ["x", "y", "z", "x"].map { .password("level").with(secret: $0) }
    + (0..<3).map { _ in .password("same") }
  static let otherUsers: [KeychainItem] = [
    .password("system", attributes: [.multiUser: .data(ItemKey.systemUser)]),
    .password("guest", attributes: [.multiUser: .data([UInt8](repeating: 7, count: 16))]),
  ]
  static let faulty: [KeychainItem] = [
    KeychainItem.password("no group").without(.accessGroup),
    KeychainItem.password("undated").without(.modificationDate),
    .password("number", attributes: [.synchronizable: .integer(2)]), .password("whole"),
  ]

  static let backups: [(name: String, items: [KeychainItem])] = [
    ("plain", plain), ("older", older), ("newer", newer), ("rival", otherSecret),
    ("synced", synced + syncedNewer.prefix(1)),
    ("tombstones", tombstones + plain.prefix(2)), ("system", systemBound), ("unbound", systemUnbound),
    ("protected", protectedNewer), ("safari", safari), ("outsiders", excluded), ("chains", duplicates),
    ("users", otherUsers), ("faulty", faulty), ("everything", plain + systemUnbound + safari + tombstones + duplicates),
  ]
  static let targets: [(name: String, items: [KeychainItem])] = [
    ("empty", []), ("plain", plain), ("older", older), ("newer", newer), ("synced", syncedNewer),
    ("tombstones", tombstones), ("system", systemBound + protected), ("unbound", systemUnbound + protectedNewer),
    ("safari", safari + safariSynced), ("outsiders", excluded.filter { $0[.accessControl] == nil }),
    ("chains", [duplicates[1], duplicates[7], duplicates[10]]), ("users", otherUsers), ("faulty", faulty),
    ("everything", newer + systemBound + protected + safariSynced + tombstones + [duplicates[1]]),
  ]
}

/// Three phones, and the class keys of a backup that its source device and a different device can unwrap.
private final class RestoreFixture {
  let setup: TestSetup
  let sourceDevice: DeviceSession
  let otherDevice: DeviceSession
  let syncingDevice: DeviceSession
  let sourceKeys: ClassKeys
  let otherKeys: ClassKeys

  init(seed: String) throws {
    setup = try TestSetup(seed: seed)
    sourceDevice = try setup.phone("source", passcode: "1111").openTestSession()
    otherDevice = try setup.phone("other", passcode: "2222").openTestSession()
    syncingDevice = try setup.phone("syncing", passcode: "3333", syncing: true).openTestSession()
    let keybag = try BackupKeybag.make(
      password: secret(TestSetup.password), deviceKey: sourceDevice.deviceKey(), rounds: 1,
      random: SeededRandomSource(seed: seed)
    ).keybag
    sourceKeys = try keybag.unlock(password: secret(TestSetup.password), deviceKey: sourceDevice.deviceKey())
    otherKeys = try keybag.unlock(password: secret(TestSetup.password), deviceKey: otherDevice.deviceKey())
  }

  /// Returns the entries of a backup. No keybag has a key for the passcode class (12), so an entry of that class is
  /// encrypted with the key of class 6.
  func entries(_ items: [KeychainItem]) throws -> [KeychainBackupFile.Entry] {
    try items.map { item in
      let keyClass = item.protection.map(\.keyClass) ?? .whenUnlocked
      let blob = try sourceKeys.seal(
        item.derDictionary(), keyClass: keyClass == .whenPasscodeSetThisDeviceOnly ? .whenUnlocked : keyClass,
        as: .backup, random: setup.environment.random)
      return KeychainBackupFile.Entry(kind: item.kind, blob: blob.serialized())
    }
  }

  func open(_ entries: [KeychainBackupFile.Entry], on session: DeviceSession) throws -> [BackupItem] {
    let file = KeychainBackupFile(keybagUUID: nil, entries: entries)
    return session === sourceDevice
      ? try BackupItem.openAll(in: file, with: sourceKeys) : try BackupItem.openAll(in: file, with: otherKeys)
  }

  func plan(
    _ items: [BackupItem], only indexes: Set<Int>? = nil, onto session: DeviceSession, policy: ExistingItemPolicy
  ) throws -> MigrationPlan {
    MigrationPlanner.plan(
      items, only: indexes, onto: try Restorer.targetRows(of: session), policy: policy,
      context: RestoreContext(targetSyncs: session.record.isSyncing, backupHasPassword: true))
  }
}

@Suite("Equality of plans and restores")
struct PlanEqualsRestoreTests {
  @Test(
    "Plan and restore agree for every backup, target and policy (900 combinations, 300 in a quick run)",
    arguments: ExistingItemPolicy.allCases)
  func matrix(_ policy: ExistingItemPolicy) throws {
    let fixture = try RestoreFixture(seed: "matrix \(policy)")
    // Two devices with all targets, and the source device with two of them.
    let total = SampleContents.backups.count * (2 * SampleContents.targets.count + 2)
    #expect(total == 450)
    let chosen = Set(Cases.chosen(0..<total, quick: 150))
    var count = 0
    var outcomes: Set<MigrationPlan.Outcome> = []
    for backup in SampleContents.backups {
      let entries = try fixture.entries(backup.items)
      for session in [fixture.sourceDevice, fixture.otherDevice, fixture.syncingDevice] {
        let items = try fixture.open(entries, on: session)
        // The source device can decrypt everything, so two of its states are enough.
        for target in SampleContents.targets
        where session !== fixture.sourceDevice || ["plain", "everything"].contains(target.name) {
          defer { count += 1 }
          guard chosen.contains(count) else { continue }
          try KeychainSnapshot.empty(session.device)
          try session.insertUnchanged(target.items.filter { (try? IncomingItem($0)) != nil })
          let context = "\(backup.name) onto \(session.name) with \(target.name), \(policy)"
          let before = try KeychainSnapshot(session)
          let plan = try fixture.plan(items, onto: session, policy: policy)
          #expect(plan.decisions.map(\.index) == Array(backup.items.indices))
          do {
            try Restorer.restore(plan, onto: session)
          } catch {
            Issue.record("\(context): \(error)")
            continue
          }
          let verifier = PlanVerifier(plan, of: backup.items, before: before, after: try KeychainSnapshot(session))
          #expect(verifier.differences.isEmpty, "\(context)")
          outcomes.formUnion(plan.decisions.map(\.outcome))
        }
      }
    }
    #expect(count == total)
    // Every case must occur.
    let changes = MigrationPlan.Change.allCases.map { MigrationPlan.Outcome.migrates($0) }
    #expect(outcomes.isSuperset(of: changes))
    let reasons: [Reason] = [
      .deviceBound, .hardwareKey, .sharedGroup, .systemBound, .needsAuthentication, .deleted,
    ]
    #expect(outcomes.isSuperset(of: reasons.map { MigrationPlan.Outcome.staysBehind($0) }))
  }

  @Test(
    "Plan and restore agree for 1,000 random backups and phones (100 in a quick run)", arguments: [UInt64(1), 2])
  func random(part: UInt64) throws {
    let fixture = try RestoreFixture(seed: "random \(part)")
    for round in 0..<UInt64(Cases.count(500, quick: 50)) {
      let seed = part << 32 | round
      let restores = try RandomRestores(seed: seed, in: fixture)
      #expect(restores.differences.isEmpty, "seed \(seed)")
    }
  }

  /// Runs thousands of independent cases in one restore. Each case has its own accounts. With the thousand cases above,
  /// these are 50,000.
  @Test("Plan and restore agree for 49,000 random cases (2,100 in a quick run)", arguments: UInt64(0)..<7)
  func manyRandom(part: UInt64) throws {
    let fixture = try RestoreFixture(seed: "many \(part)")
    let cases = Cases.count(1_000, quick: 300)
    for round in 0..<UInt64(Cases.count(7, quick: 1)) {
      let restores = try RandomRestores(seed: 3 << 32 | part << 16 | round, cases: cases, in: fixture)
      #expect(restores.differences.isEmpty, "part \(part), round \(round)")
      // On average, a case has two items: one in the backup and one on the phone.
      #expect(restores.itemCount > cases * 3 / 2)
    }
  }
}

/// Random cases with separate accounts, which are planned and carried out in one restore.
private struct RandomRestores {
  /// The differences between the plan and the restore.
  private(set) var differences: [String]
  /// The number of items in the backup and on the phone before the restore.
  private(set) var itemCount: Int

  /// - Parameter cases: The number of independent cases.
  init(seed: UInt64, cases: Int = 1, in fixture: RestoreFixture) throws {
    var random = SeededRandom(seed: seed)
    let session =
      [fixture.sourceDevice, fixture.otherDevice, fixture.syncingDevice].randomElement(using: &random)
      ?? fixture.otherDevice
    let policy = ExistingItemPolicy.allCases.randomElement(using: &random) ?? .merge
    let maximumCount = cases == 1 ? 4 : 2
    var backupItems: [KeychainItem] = []
    var residents: [KeychainItem] = []
    for number in 0..<cases {
      let suffix = cases == 1 ? "" : "\(number)"
      func items() -> [KeychainItem] {
        (0..<Int.random(in: 0...maximumCount, using: &random)).map { _ in .random(using: &random, suffix: suffix) }
      }
      backupItems += items()
      residents += items()
    }
    itemCount = backupItems.count + residents.count

    try KeychainSnapshot.empty(session.device)
    try session.insertUnchanged(
      residents.filter { $0[.accessControl] == nil && (try? IncomingItem($0)) != nil })
    let rowIDs = try KeychainSnapshot.rowIDs(of: .genericPassword, on: session.device)
    let damaged = Self.chooseDamaged(of: rowIDs, cases: cases, using: &random)
    try KeychainSnapshot.damage(damaged, on: session.device)
    let before = try KeychainSnapshot(session)

    var entries = try fixture.entries(backupItems)
    Self.damage(&entries, using: &random)
    let indexes =
      Bool.random(using: &random) ? nil : Set(backupItems.indices.filter { _ in Bool.random(using: &random) })
    let plan = try fixture.plan(try fixture.open(entries, on: session), only: indexes, onto: session, policy: policy)
    do {
      try Restorer.restore(plan, onto: session)
    } catch {
      differences = ["the restore failed: \(error)"]
      return
    }
    let damagedRows = before.rows.filter { $0.kind == .genericPassword && damaged.contains($0.rowID) }
    differences =
      PlanVerifier(
        plan, of: backupItems, before: before, after: try KeychainSnapshot(session),
        damaged: Set(damagedRows.compactMap(\.key))
      ).differences
    if Set(plan.decisions.map(\.index)) != indexes ?? Set(backupItems.indices) {
      differences.append("the plan has other items")
    }
  }

  /// Flips a bit in about one of eight entries.
  private static func damage(_ entries: inout [KeychainBackupFile.Entry], using random: inout SeededRandom) {
    for index in entries.indices where Int.random(in: 0..<8, using: &random) == 0 {
      guard let count = entries[index].blob?.count else { continue }
      entries[index].blob?[Int.random(in: 0..<count, using: &random)] ^= 1 << UInt8.random(in: 0...7, using: &random)
    }
  }

  /// Returns the rows that get a wrong digest: about one row in ten. If there is only one case, all of its rows or none.
  private static func chooseDamaged(
    of rowIDs: [Int64], cases: Int, using random: inout SeededRandom
  ) -> Set<Int64> {
    if cases == 1 { return Int.random(in: 0..<10, using: &random) == 0 ? Set(rowIDs) : [] }
    return Set(rowIDs.filter { _ in Int.random(in: 0..<10, using: &random) == 0 })
  }
}
