import Backups
import Foundation
import KeychainCrypto
import KeychainFormats
import KeychainRules
import TestSupport
import Testing
import VirtualDevice

@testable import KeyhaulKit

/// What an archive or a target may hold, by name. The same names are used on both sides, so that they meet.
private enum Holdings {
  static let sos = "com.apple.security.sos"
  static let ckks = "com.apple.security.ckks"

  static let plain = ProtectionClass.allCases.filter { $0 != .whenPasscodeSetThisDeviceOnly }.map {
    KeychainItem.password($0.rawValue, $0)
  }
  static let older = plain.map { $0.holding("older").dated(900) }
  static let newer = plain.map { $0.holding("newer").dated(1100) }
  static let rival = plain.map { $0.holding("rival") }
  static let synced = plain.prefix(3).map { $0.with([.synchronizable: .integer(1)]) }
  static let syncedNewer = synced.map { $0.holding("newer").dated(1100) }
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
    .password("marked", marks: [.systemBound: .integer(1)]), .password("unmarked", marks: [.systemBound: .integer(0)]),
    .password("Public", service: "com.apple.managedconfiguration", group: "apple"),
  ]
  /// The same primary keys as `systemBound`, bound the other way round.
  static let systemUnbound: [KeychainItem] = [
    .password("own", group: sos, marks: [.systemBound: .integer(0)]).holding("unbound").dated(1100),
    .password("identity", group: "lockdown-identities", marks: [.systemBound: .integer(0)]).dated(900),
    .password("marked").holding("unbound").dated(1100),
    .password("unmarked", marks: [.systemBound: .integer(1)]).holding("bound"),
    .password("Public", service: "com.apple.managedconfiguration", group: "apple", marks: [.systemBound: .integer(0)]),
  ]
  static let protected: [KeychainItem] = [
    .password("a", group: ckks), .password("b", group: "com.apple.security.octagon", at: 1100),
    .password("c", group: "com.apple.security.egoIdentities"),
  ]
  static let protectedNewer = protected.map { $0.holding("newer").dated(1200) }
  static let safari = ["anna", "ben"].map { KeychainItem.oldSafariPassword($0) }
  static let safariSynced = safari.map { $0.with([.synchronizable: .integer(1)]).holding("synced").dated(1100) }
  static let outsiders: [KeychainItem] = [
    .password("token", marks: [.tokenID: .string("com.apple.setoken")]),
    .password("shared", marks: [.sharingGroup: .string("g")]),
    .password("passcode", .whenPasscodeSetThisDeviceOnly),
    .password("guarded", marks: [.accessControl: .dictionary(["od": .string("cpo")])]), .password("ordinary"),
  ]
  static let chains: [KeychainItem] =
    [1000, 1100, 1200].map { .password("up", at: $0).holding("up \($0)") }
    + [1200, 1100, 1000].map { .password("down", at: $0).holding("down \($0)") }
    + ["x", "y", "z", "x"].map { .password("level").holding($0) }
    + (0..<3).map { _ in .password("same") }
  static let otherUsers: [KeychainItem] = [
    .password("system", marks: [.multiUser: .data(ItemKey.systemUser)]),
    .password("guest", marks: [.multiUser: .data([UInt8](repeating: 7, count: 16))]),
  ]
  static let faulty: [KeychainItem] = [
    KeychainItem.password("no group").without(.accessGroup),
    KeychainItem.password("undated").without(.modificationDate),
    .password("number", marks: [.synchronizable: .integer(2)]), .password("whole"),
  ]

  static let archives: [(name: String, items: [KeychainItem])] = [
    ("plain", plain), ("older", older), ("newer", newer), ("rival", rival), ("synced", synced + syncedNewer.prefix(1)),
    ("tombstones", tombstones + plain.prefix(2)), ("system", systemBound), ("unbound", systemUnbound),
    ("protected", protectedNewer), ("safari", safari), ("outsiders", outsiders), ("chains", chains),
    ("users", otherUsers), ("faulty", faulty), ("everything", plain + systemUnbound + safari + tombstones + chains),
  ]
  static let targets: [(name: String, items: [KeychainItem])] = [
    ("empty", []), ("plain", plain), ("older", older), ("newer", newer), ("synced", syncedNewer),
    ("tombstones", tombstones), ("system", systemBound + protected), ("unbound", systemUnbound + protectedNewer),
    ("safari", safari + safariSynced), ("outsiders", outsiders.filter { $0[.accessControl] == nil }),
    ("chains", [chains[1], chains[7], chains[10]]), ("users", otherUsers), ("faulty", faulty),
    ("everything", newer + systemBound + protected + safariSynced + tombstones + [chains[1]]),
  ]
}

/// The keys of one backup with a password, as they are on the phone that made it and on another.
private final class Bench {
  let desk: Desk
  let sourceDevice: DeviceSession
  let other: DeviceSession
  let syncing: DeviceSession
  let makersKeys: ClassKeys
  let othersKeys: ClassKeys

  init(seed: String) throws {
    desk = try Desk(seed: seed)
    sourceDevice = try desk.phone("maker", passcode: "1111").held()
    other = try desk.phone("other", passcode: "2222").held()
    syncing = try desk.phone("syncing", passcode: "3333", syncing: true).held()
    let bag = try BackupKeybag.make(
      password: secret(Desk.password), deviceKey: sourceDevice.deviceKey(), rounds: 1,
      random: SeededRandomSource(seed: seed))
    makersKeys = try bag.keybag.unlock(password: secret(Desk.password), deviceKey: sourceDevice.deviceKey())
    othersKeys = try bag.keybag.unlock(password: secret(Desk.password), deviceKey: other.deviceKey())
  }

  /// An archive's entries; class 12, which no keybag has, is sealed for class 6 and contradicts itself.
  func entries(_ items: [KeychainItem]) throws -> [KeychainBackupFile.Entry] {
    try items.map { item in
      let keyClass = item.protection.map(\.keyClass) ?? .whenUnlocked
      let blob = try makersKeys.seal(
        item.derDictionary(), keyClass: keyClass == .whenPasscodeSetThisDeviceOnly ? .whenUnlocked : keyClass,
        as: .backup, random: desk.environment.random)
      return KeychainBackupFile.Entry(kind: item.kind, blob: blob.serialized())
    }
  }

  func open(_ entries: [KeychainBackupFile.Entry], on session: DeviceSession) throws -> [BackupItem] {
    let file = KeychainBackupFile(keybagUUID: nil, entries: entries)
    return session === sourceDevice
      ? try BackupItem.openAll(in: file, with: makersKeys) : try BackupItem.openAll(in: file, with: othersKeys)
  }

  func plan(
    _ items: [BackupItem], only indexes: Set<Int>? = nil, onto session: DeviceSession, _ policy: ExistingItemPolicy
  ) throws -> MigrationPlan {
    MigrationPlanner.plan(
      items, only: indexes, onto: try Restorer.targetRows(of: session), policy: policy,
      context: RestoreContext(targetSyncs: session.record.isSyncing, backupHasPassword: true))
  }
}

@Suite("What the plan says is what the file then holds")
struct PlanEqualsRestore {
  @Test(
    "for every archive, target and policy: 900 combinations, of which a quick run takes 300",
    arguments: ExistingItemPolicy.allCases)
  func matrix(_ policy: ExistingItemPolicy) throws {
    let bench = try Bench(seed: "matrix \(policy)")
    let total = Holdings.archives.count * (2 * Holdings.targets.count + 2)
    #expect(total == 450)
    let chosen = Set(Cases.chosen(0..<total, quick: 150))
    var count = 0
    var seen: Set<MigrationPlan.Outcome> = []
    for archive in Holdings.archives {
      let entries = try bench.entries(archive.items)
      for session in [bench.sourceDevice, bench.other, bench.syncing] {
        let items = try bench.open(entries, on: session)
        // Where everything opens for sure, the phone that made the archive adds little: two of its states.
        for target in Holdings.targets
        where session !== bench.sourceDevice || ["plain", "everything"].contains(target.name) {
          defer { count += 1 }
          guard chosen.contains(count) else { continue }
          try HeldKeychain.empty(session.device)
          try session.plant(target.items.filter { (try? IncomingItem($0)) != nil })
          let before = try HeldKeychain(session)
          let plan = try bench.plan(items, onto: session, policy)
          #expect(plan.decisions.map(\.index) == Array(archive.items.indices))
          do {
            try Restorer.restore(plan, onto: session)
          } catch {
            Issue.record("\(archive.name) onto \(session.name) with \(target.name), \(policy): \(error)")
            continue
          }
          let check = PlanCheck(plan, of: archive.items, before: before, after: try HeldKeychain(session))
          #expect(
            check.differences.isEmpty, "\(archive.name) onto \(session.name) with \(target.name), \(policy)")
          seen.formUnion(plan.decisions.map(\.outcome))
        }
      }
    }
    #expect(count == total)
    // The matrix is no use where it never meets a case.
    let changes = MigrationPlan.Change.allCases.map { MigrationPlan.Outcome.migrates($0) }
    #expect(seen.isSuperset(of: changes))
    let reasons: [Reason] = [
      .deviceBound, .hardwareKey, .sharedGroup, .systemBound, .needsAuthentication, .deleted,
    ]
    #expect(seen.isSuperset(of: reasons.map { MigrationPlan.Outcome.staysBehind($0) }))
  }

  @Test(
    "for 1,000 random archives and phones, one restore each, of which a quick run takes 100", arguments: [UInt64(1), 2])
  func random(half: UInt64) throws {
    let bench = try Bench(seed: "random \(half)")
    for round in 0..<UInt64(Cases.count(500, quick: 50)) {
      let story = try RandomStory(seed: half << 32 | round, bench)
      #expect(story.differences.isEmpty, "seed \(half << 32 | round)")
    }
  }

  /// A thousand cases side by side in one restore, told apart by their accounts, so that none has to do with another:
  /// 49,000, which with the thousand above make 50,000. A quick run puts three hundred side by side.
  @Test("for 49,000 random cases, many at a time, of which a quick run takes 2,100", arguments: UInt64(0)..<7)
  func manyRandom(part: UInt64) throws {
    let bench = try Bench(seed: "many \(part)")
    let cases = Cases.count(1_000, quick: 300)
    for round in 0..<UInt64(Cases.count(7, quick: 1)) {
      let story = try RandomStory(seed: 3 << 32 | part << 16 | round, cases: cases, bench)
      #expect(story.differences.isEmpty, "part \(part), round \(round)")
      #expect(story.itemCount > cases * 3 / 2)
    }
  }
}

/// Random archives and random phones with nothing in common, in one restore.
private struct RandomStory {
  private(set) var differences: [String]
  /// Items of the archives and of the phones.
  private(set) var itemCount: Int

  /// - Parameter cases: How many are put side by side.
  init(seed: UInt64, cases: Int = 1, _ bench: Bench) throws {
    var random = SeededRandom(seed: seed)
    let session = [bench.sourceDevice, bench.other, bench.syncing].randomElement(using: &random) ?? bench.other
    let policy = ExistingItemPolicy.allCases.randomElement(using: &random) ?? .merge
    let most = cases == 1 ? 4 : 2
    var archive: [KeychainItem] = []
    var resident: [KeychainItem] = []
    for number in 0..<cases {
      let mark = cases == 1 ? "" : "\(number)"
      archive += (0..<Int.random(in: 0...most, using: &random)).map { _ in .random(&random, mark) }
      resident += (0..<Int.random(in: 0...most, using: &random)).map { _ in .random(&random, mark) }
    }
    itemCount = archive.count + resident.count

    try HeldKeychain.empty(session.device)
    try session.plant(
      resident.filter { $0[.accessControl] == nil && (try? IncomingItem($0)) != nil })
    let damaged = Self.chooseDamaged(try HeldKeychain.rowIDs(of: .genericPassword, on: session.device), cases, &random)
    try HeldKeychain.damage(damaged, on: session.device)
    let before = try HeldKeychain(session)

    var entries = try bench.entries(archive)
    for index in entries.indices where Int.random(in: 0..<8, using: &random) == 0 {
      guard let count = entries[index].blob?.count else { continue }
      entries[index].blob?[Int.random(in: 0..<count, using: &random)] ^= 1 << UInt8.random(in: 0...7, using: &random)
    }
    let indexes =
      Bool.random(using: &random) ? nil : Set(archive.indices.filter { _ in Bool.random(using: &random) })
    let plan = try bench.plan(try bench.open(entries, on: session), only: indexes, onto: session, policy)
    do {
      try Restorer.restore(plan, onto: session)
    } catch {
      differences = ["the restore failed: \(error)"]
      return
    }
    differences =
      PlanCheck(
        plan, of: archive, before: before, after: try HeldKeychain(session),
        damaged: Set(before.rows.filter { $0.kind == .genericPassword && damaged.contains($0.rowID) }.compactMap(\.key))
      ).differences
    if Set(plan.decisions.map(\.index)) != indexes ?? Set(archive.indices) { differences.append("not these items") }
  }

  /// Rows whose digest will not fit: all of one story in ten, or one in ten of many.
  private static func chooseDamaged(_ rowIDs: [Int64], _ cases: Int, _ random: inout SeededRandom) -> Set<Int64> {
    if cases == 1 { return Int.random(in: 0..<10, using: &random) == 0 ? Set(rowIDs) : [] }
    return Set(rowIDs.filter { _ in Int.random(in: 0..<10, using: &random) == 0 })
  }
}
