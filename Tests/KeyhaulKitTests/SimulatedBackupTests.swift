import KeychainCrypto
import KeychainFormats
import KeychainRules
import TestSupport
import Testing
import VirtualDevice

@testable import Backups
@testable import KeyhaulKit

@Suite("Plans of devices without a backup")
struct SimulatedBackupTests {
  static let fixtures = ["old-phone", "new-phone", "hostile-names", "every-rule", "every-rule-target"]

  @Test(
    "A plan of a device equals the plan of its backup, for every bundled phone (3 in a quick run)",
    arguments: fixtures)
  func bundledPhones(_ fixture: String) throws {
    let setup = try TestSetup(seed: "forecast \(fixture)")
    let source = try setup.bundled(fixture, named: "source")
    for other in Cases.chosen(Self.fixtures, quick: 3, seed: UInt64(fixture.utf8.count)) {
      let target = try setup.bundled(other, named: "target-\(other)")
      for password in [TestSetup.password, nil] {
        let path = try setup.backUp(source, password: password)
        let sourceSession = try source.openTestSession(.reading)
        defer { sourceSession.invalidate() }
        let simulatedBackup = try SimulatedBackup(of: sourceSession, hasPassword: password != nil)
        let excluded = try BackupExporter.prepare(sourceSession, password: nil).report.omissions.filter {
          $0.outcome.reason != .deleted
        }
        for device in [source, target] {
          let session = try device.openTestSession(.reading)
          defer { session.invalidate() }
          let unlocked = try setup.open(path, password: password, on: session)
          for policy in ExistingItemPolicy.allCases {
            let predicted = try Restorer.plan(simulatedBackup, onto: session, policy: policy)
            let real = try Restorer.plan(unlocked, onto: session, policy: policy)
            expectEqual(predicted, real, excluded: excluded)
          }
        }
      }
    }
  }

  /// Checks that the predicted plan has the same decisions as the real one, and then one for each excluded item.
  private func expectEqual(_ predicted: MigrationPlan, _ real: MigrationPlan, excluded: [MigrationPlan.Decision]) {
    let count = real.decisions.count
    let (inBackup, notInBackup) = (predicted.decisions.prefix(count), predicted.decisions.dropFirst(count))
    #expect(inBackup.map(ComparableDecision.init) == real.decisions.map(ComparableDecision.init))
    for (predictedDecision, realDecision) in zip(inBackup, real.decisions) where realDecision.readableIdentity != nil {
      #expect(predictedDecision.identity == realDecision.identity)
    }
    #expect(predicted.removed == real.removed)
    #expect(predicted.isSameDevice == real.isSameDevice)
    #expect(notInBackup.map(\.outcome) == excluded.compactMap(\.outcome.reason).map { .staysBehind($0) })
    #expect(notInBackup.map(\.identity) == excluded.map(\.identity))
    #expect(predicted.decisions.map(\.index) == Array(predicted.decisions.indices))
  }

  @Test("Reopening a backup with another device key gives the same items as opening it with that key from the start")
  func openedAgain() throws {
    let setup = try TestSetup(seed: "opened again")
    let source = try setup.bundled("every-rule", named: "source")
    let target = try setup.phone("target")
    for password in [TestSetup.password, nil] {
      let archive = try BackupArchive.open(.path(try setup.backUp(source, password: password)))
      let key = try archive.unlock(password: secret(password))
      let phones = [nil, try source.openTestSession(.reading), try target.openTestSession(.reading)]
      defer { for phone in phones { phone?.invalidate() } }
      for first in phones {
        let unlocked = try archive.open(with: key, deviceKey: try first?.deviceKey())
        for second in phones {
          let reused = try unlocked.archive.open(
            with: key, deviceKey: try second?.deviceKey(), for: .restoring, reusing: unlocked)
          let expected = try archive.open(with: key, deviceKey: try second?.deviceKey())
          #expect(reused.items.map(ItemSnapshot.init) == expected.items.map(ItemSnapshot.init))
          #expect(reused.isSameDevice == expected.isSameDevice && reused.itemCounts == expected.itemCounts)
        }
      }
    }
  }

  @Test("An item takes over the key's result from another item of its class; if the key works, its own damage remains")
  func trials() {
    func item(_ opening: BackupItem.Opening, _ classKey: ClassKeyAvailability?) -> BackupItem {
      BackupItem(index: 3, kind: .genericPassword, protection: .whenUnlocked, classKey: classKey, opening: opening)
    }
    let content = BackupItem.Opening.opened(.genericPassword())
    let (decrypted, undecrypted) = (item(content, .available), item(.failed(.keyUnwrapFailed), .availableThroughDevice))
    let damaged = item(.failed(.malformed("a fault")), nil)
    #expect(ItemSnapshot(item(content, nil).withResult(of: decrypted, at: 3)) == ItemSnapshot(decrypted))
    #expect(ItemSnapshot(item(content, nil).withResult(of: undecrypted, at: 3)) == ItemSnapshot(undecrypted))
    // Without a key, the item's own damage cannot be known.
    #expect(ItemSnapshot(damaged.withResult(of: undecrypted, at: 3)) == ItemSnapshot(undecrypted))
    #expect(damaged.withResult(of: decrypted, at: 7).index == 7)
    #expect(ItemSnapshot(damaged.withResult(of: decrypted, at: 3)).failure == .malformed("a fault"))
  }

  /// The known properties of an item, with a digest of its value.
  private struct ItemSnapshot: Equatable {
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

  /// A decision without names, because only the device knows the names of encrypted items.
  private struct ComparableDecision: Equatable {
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

  @Test("A plan from a device names items that stay behind")
  func names() throws {
    let setup = try TestSetup(seed: "names")
    let source = try setup.bundled("old-phone").openTestSession(.reading)
    let target = try setup.bundled("new-phone").openTestSession(.reading)
    let plan = try Restorer.plan(SimulatedBackup(of: source, hasPassword: true), onto: target, policy: .replace)
    #expect(plan["push token"] == .staysBehind && plan.reason(for: "push token") == .deviceBound)
    #expect(plan.reason(for: "card 4") == .passcodeOnly)
    #expect(plan.reason(for: "ssh work laptop") == .hardwareKey)
    #expect(plan.reason(for: "vault key") == .needsAuthentication)
    #expect(plan.reason(for: "peer key") == .systemBound)
    #expect(plan.summary.total == 22 && plan.summary.migrates == 14)
  }

  @Test("A plan from a device changes neither device")
  func changesNothing() throws {
    let setup = try TestSetup(seed: "unchanged")
    let source = try setup.bundled("old-phone").openTestSession(.reading)
    let target = try setup.bundled("new-phone").openTestSession(.reading)
    let sourceBefore = try KeychainSnapshot(source).columnsOfRows
    let targetBefore = try KeychainSnapshot(target).columnsOfRows
    _ = try Restorer.plan(SimulatedBackup(of: source, hasPassword: true), onto: target, policy: .replace)
    #expect(try KeychainSnapshot(source).columnsOfRows == sourceBefore)
    #expect(try KeychainSnapshot(target).columnsOfRows == targetBefore)
    #expect(source.record.lastBackup == nil)
  }

  @Test("Planning from a device, like a backup, requires it to be unlocked")
  func locked() throws {
    let setup = try TestSetup(seed: "locked")
    let source = try setup.bundled("old-phone").openTestSession()
    try source.lock()
    let error = try keyhaulError { _ = try SimulatedBackup(of: source, hasPassword: true) }
    #expect(error?.category == .locked)
  }

  @Test("A simulated backup is restored as planned")
  func restored() throws {
    let setup = try TestSetup(seed: "direct")
    let source = try setup.bundled("old-phone").openTestSession(.reading)
    let target = try setup.bundled("new-phone").openTestSession()
    let plan = try Restorer.plan(SimulatedBackup(of: source, hasPassword: true), onto: target, policy: .replace)
    try Restorer.restore(plan, onto: target)
    #expect(try target.itemCount == plan.summary.migrates)
  }
}

extension MigrationPlan.Decision {
  /// The identity of the item; `nil` if its names are encrypted.
  fileprivate var readableIdentity: ItemDescriptor? { identity.isEncrypted ? nil : identity }
}
