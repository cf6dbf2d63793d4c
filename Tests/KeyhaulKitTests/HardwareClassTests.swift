import Backups
import KeychainCrypto
import KeychainFormats
import KeychainRules
import TestSupport
import Testing
import VirtualDevice

@testable import KeyhaulKit

/// Anyone who knows the target's device key can wrap class keys with it. A decrypted item proves only its own class.
@Suite("Class keys that are bound to two devices")
struct HardwareClassTests {
  private static let classes: [ProtectionClass] = TwoPhones.migratable + TwoPhones.deviceOnly
  /// Each class has two items, so that one can be damaged while the other proves the class.
  private static let items = classes.flatMap {
    [KeychainItem.password("\($0.rawValue) 1", $0), .password("\($0.rawValue) 2", $0)]
  }

  private struct Scenario: CustomStringConvertible {
    let hasPassword: Bool
    /// The classes whose keys are wrapped with the new phone's device key instead of the old phone's.
    let targetClasses: Set<ProtectionClass>
    /// The positions of the items with a damaged wrapped key.
    let damaged: Set<Int>

    /// The classes whose keys are wrapped with a device key.
    var boundClasses: [ProtectionClass] { hasPassword ? TwoPhones.deviceOnly : HardwareClassTests.classes }
    var provenClasses: [ProtectionClass] { boundClasses.filter(isProven) }
    /// Whether the restore can tell that the new phone is the source device; `nil` if only some classes are proven.
    var isSameDevice: Bool? {
      provenClasses.count == boundClasses.count ? true : provenClasses.isEmpty ? false : nil
    }
    var description: String {
      "of \(targetClasses.map(\.rawValue).sorted()), damaged \(damaged.sorted()), password \(hasPassword)"
    }

    /// Returns whether the new phone can decrypt one of the class's items.
    private func isProven(_ protection: ProtectionClass) -> Bool {
      let hasIntactItem = HardwareClassTests.items.indices.contains {
        HardwareClassTests.items[$0].protection == protection && !damaged.contains($0)
      }
      return targetClasses.contains(protection) && hasIntactItem
    }

    /// Returns the expected outcome for an item, written without the planner's rules.
    func outcome(at index: Int) -> MigrationPlan.Outcome {
      let protection = HardwareClassTests.classes[index / 2]
      if boundClasses.contains(protection), !isProven(protection) {
        return .staysBehind(hasPassword || protection.isThisDeviceOnly ? .deviceBound : .backupNotEncrypted)
      }
      return damaged.contains(index) ? .unreadable(.tagMismatch) : .migrates(.new)
    }
  }

  /// Returns a keybag for a phone. All keybags have the same class keys and salts.
  private func makeKeybag(password: String?, deviceKey: DeviceKey) throws -> UnlockedKeybag {
    try BackupKeybag.make(
      password: secret(password), deviceKey: deviceKey, rounds: 1, random: SeededRandomSource(seed: "two devices"))
  }

  /// Returns the old phone's keybag, with some classes wrapped with the new phone's device key.
  private func mixed(_ source: Keybag, withClasses classes: Set<ProtectionClass>, of target: Keybag) -> Keybag {
    let keyClasses = classes.map(\.keyClass)
    var mixed = source
    for (index, classKey) in source.classKeys.enumerated() {
      if let keyClass = classKey.keyClass, keyClasses.contains(keyClass) {
        mixed.classKeys[index] = target.classKeys[index]
      }
    }
    return mixed
  }

  @Test(
    "Each class proves only itself, for every set of classes (twelve in a quick run), with and without damage",
    arguments: [true, false])
  func everySet(hasPassword: Bool) throws {
    let setup = try TestSetup(seed: "two devices")
    let old = try setup.phone("old-phone").openTestSession()
    let new = try setup.phone("new-phone").openTestSession()
    let bound = hasPassword ? TwoPhones.deviceOnly : Self.classes
    let password = hasPassword ? TestSetup.password : nil
    let unlockedSource = try makeKeybag(password: password, deviceKey: old.deviceKey())
    let sourceKeybag = unlockedSource.keybag
    let sourceKeys = unlockedSource.classKeys
    let targetKeybag = try makeKeybag(password: password, deviceKey: new.deviceKey()).keybag
    let passcodeKey = try sourceKeybag.passcodeKey(password: secret(password) ?? Secret(utf8: ""))
    // No damage, one item of a class, or both items of a class.
    let damages: [Set<Int>] = [[]] + Self.classes.indices.flatMap { [[2 * $0], [2 * $0, 2 * $0 + 1]] }
    var count = 0
    // The bits of a number select the classes of a set.
    for bits in Cases.chosen(0..<(1 << bound.count), quick: 12) {
      let targetClasses = Set(bound.indices.filter { bits >> $0 & 1 == 1 }.map { bound[$0] })
      let targetKeys = try mixed(sourceKeybag, withClasses: targetClasses, of: targetKeybag).unlock(
        passcodeKey: passcodeKey.copy(), deviceKey: new.deviceKey())
      for damaged in damages {
        let scenario = Scenario(hasPassword: hasPassword, targetClasses: targetClasses, damaged: damaged)
        let file = KeychainBackupFile(keybagUUID: nil, entries: try entries(damaged: damaged, keys: sourceKeys))
        try check(try BackupItem.openAll(in: file, with: targetKeys), in: scenario, on: new)
        count += 1
      }
    }
    let setCount = hasPassword ? 8 : Cases.count(64, quick: 12)
    #expect(count == setCount * damages.count && damages.count == 13)
  }

  /// Returns the encrypted items, some with a damaged wrapped key.
  private func entries(damaged: Set<Int>, keys: ClassKeys) throws -> [KeychainBackupFile.Entry] {
    let random = SeededRandomSource(seed: "items")
    return try Self.items.enumerated().map { index, item in
      var blob = try keys.seal(item, as: .backup, random: random)
      if damaged.contains(index) {
        blob = try ItemBlob(
          hasStaticIV: false, keyClass: blob.keyClass, wrappedKey: blob.wrappedKey.map { $0 ^ 1 },
          ciphertext: blob.ciphertext, tag: blob.tag)
      }
      return KeychainBackupFile.Entry(kind: item.kind, blob: blob.serialized())
    }
  }

  /// Plans and restores the items, and compares both with the expected outcomes.
  private func check(_ items: [BackupItem], in scenario: Scenario, on session: DeviceSession) throws {
    try KeychainSnapshot.empty(session.device)
    let before = try KeychainSnapshot(session)
    let plan = MigrationPlanner.plan(
      items, onto: try Restorer.targetRows(of: session), policy: .replace,
      context: RestoreContext(backupHasPassword: scenario.hasPassword))
    #expect(plan.decisions.map(\.outcome) == Self.items.indices.map(scenario.outcome), "\(scenario)")
    #expect(plan.isSameDevice == scenario.isSameDevice, "\(scenario)")
    try Restorer.restore(plan, onto: session)
    let verifier = PlanVerifier(plan, of: Self.items, before: before, after: try KeychainSnapshot(session))
    #expect(verifier.differences.isEmpty, "\(scenario)")
    for decision in plan.decisions where decision.outcome.reason == .deviceBound {
      let isUncertain = decision.detail?.contains("Keyhaul cannot tell which") == true
      #expect(isUncertain == (scenario.isSameDevice == nil), "\(scenario)")
    }
  }
}
