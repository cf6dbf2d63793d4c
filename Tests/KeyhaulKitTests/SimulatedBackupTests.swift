import KeychainCrypto
import KeychainFormats
import KeychainRules
import TestSupport
import Testing
import VirtualDevice

@testable import Backups
@testable import KeyhaulKit

@Suite("A plan of a device that has no backup yet")
struct ForecastTests {
  static let fixtures = ["old-phone", "new-phone", "hostile-names", "every-rule", "every-rule-target"]

  @Test(
    "is the plan of the backup that is then made, for every bundled phone onto five, of which a quick run takes 3",
    arguments: fixtures)
  func real(_ fixture: String) throws {
    let desk = try Desk(seed: "forecast \(fixture)")
    let source = try desk.bundled(fixture, named: "source")
    for other in Cases.chosen(Self.fixtures, quick: 3, seed: UInt64(fixture.utf8.count)) {
      let target = try desk.bundled(other, named: "target-\(other)")
      for password in [Desk.password, nil] {
        let path = try desk.backUp(source, password: password)
        let held = try source.held(.reading)
        defer { held.invalidate() }
        let simulatedBackup = try SimulatedBackup(of: held, hasPassword: password != nil)
        let left = try BackupExporter.prepare(held, password: nil).report.leftOut.filter {
          $0.outcome.reason != .deleted
        }
        for device in [source, target] {
          let session = try device.held(.reading)
          defer { session.invalidate() }
          let archive = try desk.open(path, password: password, on: session)
          for policy in ExistingItemPolicy.allCases {
            let foreseen = try Restorer.plan(simulatedBackup, onto: session, policy: policy)
            let real = try Restorer.plan(archive, onto: session, policy: policy)
            let count = real.decisions.count
            #expect(foreseen.decisions.prefix(count).map(Foreseen.init) == real.decisions.map(Foreseen.init))
            for (seen, found) in zip(foreseen.decisions, real.decisions) where found.item != nil {
              #expect(seen.identity == found.identity)
            }
            #expect(foreseen.removed == real.removed)
            #expect(foreseen.isSameDevice == real.isSameDevice)
            let rules = left.compactMap(\.outcome.reason)
            #expect(foreseen.decisions.dropFirst(count).map(\.outcome) == rules.map { .staysBehind($0) })
            #expect(foreseen.decisions.dropFirst(count).map(\.identity) == left.map(\.identity))
            #expect(foreseen.decisions.map(\.index) == Array(foreseen.decisions.indices))
          }
        }
      }
    }
  }

  @Test("of a backup that was opened with one phone's hardware is, with another's, as if it was opened again")
  func openedAgain() throws {
    let desk = try Desk(seed: "opened again")
    let source = try desk.bundled("every-rule", named: "source")
    let target = try desk.phone("target")
    for password in [Desk.password, nil] {
      let archive = try BackupArchive.open(.path(try desk.backUp(source, password: password)))
      let key = try archive.unlock(password: secret(password))
      let phones = [nil, try source.held(.reading), try target.held(.reading)]
      defer { for phone in phones { phone?.invalidate() } }
      for first in phones {
        let opened = try archive.open(with: key, deviceKey: try first?.deviceKey())
        for second in phones {
          let again = try opened.archive.open(
            with: key, deviceKey: try second?.deviceKey(), for: .restoring, reusing: opened)
          let reopened = try archive.open(with: key, deviceKey: try second?.deviceKey())
          #expect(again.items.map(Standing.init) == reopened.items.map(Standing.init))
          #expect(again.isSameDevice == reopened.isSameDevice && again.contents == reopened.contents)
        }
      }
    }
  }

  @Test("takes of a trial what it lacks, and of the item what is wrong with itself")
  func trials() {
    func item(_ opening: BackupItem.Opening, _ classKey: ClassKeyAvailability?) -> BackupItem {
      BackupItem(index: 3, kind: .genericPassword, protection: .whenUnlocked, classKey: classKey, opening: opening)
    }
    let open = BackupItem.Opening.opened(.genericPassword())
    let (opens, shut) = (item(open, .available), item(.failed(.keyUnwrapFailed), .availableThroughDevice))
    let damaged = item(.failed(.malformed("its form")), nil)
    #expect(Standing(item(open, nil).tried(like: opens, at: 3)) == Standing(opens))
    #expect(Standing(item(open, nil).tried(like: shut, at: 3)) == Standing(shut))
    #expect(Standing(damaged.tried(like: shut, at: 3)) == Standing(shut))
    #expect(damaged.tried(like: opens, at: 7).index == 7)
    #expect(Standing(damaged.tried(like: opens, at: 3)).failure == .malformed("its form"))
  }

  /// All that is known of an item, its value by its digest.
  private struct Standing: Equatable {
    let index: Int
    let classKey: ClassKeyAvailability?
    let failure: BackupItem.Failure?
    let identity: ItemDescriptor?
    let digest: [UInt8]?
    let fingerprint: ItemFingerprint?

    init(_ item: BackupItem) {
      index = item.index
      classKey = item.classKey
      identity = item.item.map(ItemDescriptor.init)
      digest = item.item.flatMap { try? $0.digest() }
      fingerprint = item.fingerprint
      if case .failed(let failure) = item.opening { self.failure = failure } else { failure = nil }
    }
  }

  /// A decision without the names, which only the device itself knows of what is sealed.
  private struct Foreseen: Equatable {
    let index: Int
    let protection: ProtectionClass?
    let outcome: MigrationPlan.Outcome
    let detail: String?

    init(_ decision: MigrationPlan.Decision) {
      index = decision.index
      protection = decision.protection
      outcome = decision.outcome
      detail = decision.detail
    }
  }

  @Test("names what stays behind, since the device itself is asked")
  func names() throws {
    let desk = try Desk(seed: "names")
    let source = try desk.bundled("old-phone").held(.reading)
    let target = try desk.bundled("new-phone").held(.reading)
    let plan = try Restorer.plan(SimulatedBackup(of: source, hasPassword: true), onto: target, policy: .replace)
    #expect(plan["push token"] == .staysBehind && plan.reason(for: "push token") == .deviceBound)
    #expect(plan.reason(for: "card 4") == .passcodeOnly)
    #expect(plan.reason(for: "ssh work laptop") == .hardwareKey)
    #expect(plan.reason(for: "vault key") == .needsAuthentication)
    #expect(plan.reason(for: "peer key") == .systemBound)
    #expect(plan.summary.total == 22 && plan.summary.migrates == 14)
  }

  @Test("changes neither device")
  func changesNothing() throws {
    let desk = try Desk(seed: "unchanged")
    let source = try desk.bundled("old-phone").held(.reading)
    let target = try desk.bundled("new-phone").held(.reading)
    let before = (try HeldKeychain(source).image, try HeldKeychain(target).image)
    _ = try Restorer.plan(SimulatedBackup(of: source, hasPassword: true), onto: target, policy: .replace)
    #expect(try HeldKeychain(source).image == before.0 && HeldKeychain(target).image == before.1)
    #expect(source.record.lastBackup == nil)
  }

  @Test("asks for the device to be unlocked, as a backup does")
  func locked() throws {
    let desk = try Desk(seed: "locked")
    let source = try desk.bundled("old-phone").held()
    try source.lock()
    let error = try migrationError { _ = try SimulatedBackup(of: source, hasPassword: true) }
    #expect(error?.category == .locked)
  }

  @Test("is restored as it says, without the file in between")
  func restored() throws {
    let desk = try Desk(seed: "direct")
    let source = try desk.bundled("old-phone").held(.reading)
    let target = try desk.bundled("new-phone").held()
    let plan = try Restorer.plan(SimulatedBackup(of: source, hasPassword: true), onto: target, policy: .replace)
    try Restorer.restore(plan, onto: target)
    #expect(try target.itemCount == plan.summary.migrates)
  }
}

extension MigrationPlan.Decision {
  /// Whether the item is known by name.
  fileprivate var item: ItemDescriptor? { identity.isEncrypted ? nil : identity }
}
