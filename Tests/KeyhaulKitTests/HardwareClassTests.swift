import Backups
import KeychainCrypto
import KeychainFormats
import KeychainRules
import TestSupport
import Testing
import VirtualDevice

@testable import KeyhaulKit

/// Anyone who knows the target's hardware key can wrap class keys with it. A decrypted item proves only its own class.
@Suite("Class keys that are bound to two devices")
struct HardwareClassTests {
  private static let classes: [ProtectionClass] = TwoPhones.migratable + TwoPhones.deviceOnly

  /// Returns a keybag for a phone. All keybags have the same class keys and salts.
  private func makeKeybag(_ password: String?, _ key: DeviceKey) throws -> UnlockedKeybag {
    try BackupKeybag.make(
      password: secret(password), deviceKey: key, rounds: 1, random: SeededRandomSource(seed: "two devices"))
  }

  /// Returns the old phone's keybag, with the target's classes wrapped with the new phone's key.
  private func mixed(_ targetClasses: Set<ProtectionClass>, source: Keybag, target: Keybag) -> Keybag {
    var mixed = source
    for index in mixed.classKeys.indices
    where targetClasses.contains(where: { $0.keyClass == mixed.classKeys[index].keyClass }) {
      mixed.classKeys[index] = target.classKeys[index]
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
    // Each class has two items, so that one can be damaged while the other proves the class.
    let items = Self.classes.flatMap {
      [KeychainItem.password("\($0.rawValue) 1", $0), .password("\($0.rawValue) 2", $0)]
    }
    let password = hasPassword ? TestSetup.password : nil
    let unlockedSource = try makeKeybag(password, old.deviceKey())
    let sourceKeybag = unlockedSource.keybag
    let sourceKeys = unlockedSource.classKeys
    let targetKeybag = try makeKeybag(password, new.deviceKey()).keybag
    let passcodeKey = try sourceKeybag.passcodeKey(password: secret(password) ?? Secret(utf8: ""))
    var count = 0
    for set in Cases.chosen(0..<(1 << bound.count), quick: 12) {
      let targetClasses = Set(bound.indices.filter { set >> $0 & 1 == 1 }.map { bound[$0] })
      let opened = try mixed(targetClasses, source: sourceKeybag, target: targetKeybag).unlock(
        passcodeKey: passcodeKey.copy(), deviceKey: new.deviceKey())
      // Damage no wrapped key, the first one of each class, or both of each class.
      for damage in [[]] + Self.classes.flatMap({ [[($0, 1)], [($0, 1), ($0, 2)]] }) {
        try check(items, targetClasses, damage, sourceKeys, opened, bound: bound, hasPassword: hasPassword, on: new)
        count += 1
      }
    }
    #expect(count == (hasPassword ? 8 : Cases.count(64, quick: 12)) * 13)
  }

  private func check(
    _ items: [KeychainItem], _ targetClasses: Set<ProtectionClass>, _ damage: [(ProtectionClass, Int)],
    _ sourceDevice: ClassKeys, _ target: ClassKeys, bound: [ProtectionClass], hasPassword: Bool,
    on session: DeviceSession
  ) throws {
    var damaged: Set<Int> = []
    for (protection, number) in damage {
      damaged.insert(try #require(Self.classes.firstIndex(of: protection)) * 2 + number - 1)
    }
    let random = SeededRandomSource(seed: "items")
    var entries: [KeychainBackupFile.Entry] = []
    for (index, item) in items.enumerated() {
      var blob = try sourceDevice.seal(item, as: .backup, random: random)
      if damaged.contains(index) {
        blob = try ItemBlob(
          hasStaticIV: false, keyClass: blob.keyClass, wrappedKey: blob.wrappedKey.map { $0 ^ 1 },
          ciphertext: blob.ciphertext, tag: blob.tag)
      }
      entries.append(KeychainBackupFile.Entry(kind: item.kind, blob: blob.serialized()))
    }
    let archived = try BackupItem.openAll(in: KeychainBackupFile(keybagUUID: nil, entries: entries), with: target)

    // The expected outcomes by hand: without a device wrap, with this device's wrap, and with the other device's.
    func isProven(_ protection: ProtectionClass) -> Bool {
      targetClasses.contains(protection) && damage.filter { $0.0 == protection }.count < 2
    }
    let expected = items.indices.map { index -> MigrationPlan.Outcome in
      let protection = Self.classes[index / 2]
      guard bound.contains(protection) else {
        return damaged.contains(index) ? .unreadable(.tagMismatch) : .migrates(.new)
      }
      guard isProven(protection) else {
        return .staysBehind(hasPassword || protection.isThisDeviceOnly ? .deviceBound : .backupNotEncrypted)
      }
      return damaged.contains(index) ? .unreadable(.tagMismatch) : .migrates(.new)
    }
    let proven = bound.filter(isProven)
    let isSameDevice = proven.count == bound.count ? true : proven.isEmpty ? false : Bool?.none
    let context = "of \(targetClasses.map(\.rawValue).sorted()), damaged \(damaged.sorted()), password \(hasPassword)"

    try KeychainSnapshot.empty(session.device)
    let before = try KeychainSnapshot(session)
    let plan = MigrationPlanner.plan(
      archived, onto: try Restorer.targetRows(of: session), policy: .replace,
      context: RestoreContext(backupHasPassword: hasPassword))
    #expect(plan.decisions.map(\.outcome) == expected, "\(context)")
    #expect(plan.isSameDevice == isSameDevice, "\(context)")
    try Restorer.restore(plan, onto: session)
    let check = PlanVerifier(plan, of: items, before: before, after: try KeychainSnapshot(session))
    #expect(check.differences.isEmpty, "\(context)")
    for decision in plan.decisions where decision.outcome.reason == .deviceBound {
      #expect((decision.detail?.contains("Keyhaul cannot tell which") == true) == (isSameDevice == nil), "\(context)")
    }
  }
}
