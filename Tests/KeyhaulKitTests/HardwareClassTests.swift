import Backups
import KeychainCrypto
import KeychainFormats
import KeychainRules
import TestSupport
import Testing
import VirtualDevice

@testable import KeyhaulKit

/// A source that knows the target's hardware key may wrap any class key with it. What then opens proves its own class.
@Suite("Class keys of one backup that are bound to two devices")
struct HardwareClassTests {
  private static let classes: [ProtectionClass] = TwoPhones.migratable + TwoPhones.deviceOnly

  /// A backup's bag for a phone. Two of them have the same class keys and salts: both are made from the same bytes.
  private func bag(_ password: String?, _ key: DeviceKey) throws -> UnlockedKeybag {
    try BackupKeybag.make(
      password: secret(password), deviceKey: key, rounds: 1, random: SeededRandomSource(seed: "two devices"))
  }

  /// The bag of the old phone in which the classes of `own` are wrapped with the new phone's key instead.
  private func mixed(_ own: Set<ProtectionClass>, _ makers: Keybag, _ targets: Keybag) -> Keybag {
    var mixed = makers
    for index in mixed.classKeys.indices where own.contains(where: { $0.keyClass == mixed.classKeys[index].keyClass }) {
      mixed.classKeys[index] = targets.classKeys[index]
    }
    return mixed
  }

  @Test(
    "prove themselves alone, for every set of classes, or twelve in a quick run, with and without damage",
    arguments: [true, false])
  func everySet(hasPassword: Bool) throws {
    let desk = try Desk(seed: "two devices")
    let old = try desk.phone("old-phone").held()
    let new = try desk.phone("new-phone").held()
    let bound = hasPassword ? TwoPhones.deviceOnly : Self.classes
    // Two items of each class, so that one can be damaged while the other proves the class.
    let items = Self.classes.flatMap {
      [KeychainItem.password("\($0.rawValue) 1", $0), .password("\($0.rawValue) 2", $0)]
    }
    let password = hasPassword ? Desk.password : nil
    let makers = try bag(password, old.deviceKey())
    let makersBag = makers.keybag
    let makersKeys = makers.classKeys
    let targetsBag = try bag(password, new.deviceKey()).keybag
    let passcodeKey = try makersBag.passcodeKey(password: secret(password) ?? Secret(utf8: ""))
    var count = 0
    for set in Cases.chosen(0..<(1 << bound.count), quick: 12) {
      let own = Set(bound.indices.filter { set >> $0 & 1 == 1 }.map { bound[$0] })
      let opened = try mixed(own, makersBag, targetsBag).unlock(
        passcodeKey: passcodeKey.copy(), deviceKey: new.deviceKey())
      // Of no class, of each one its first item's wrapped key, and of each both.
      for damage in [[]] + Self.classes.flatMap({ [[($0, 1)], [($0, 1), ($0, 2)]] }) {
        try check(items, own, damage, makersKeys, opened, bound: bound, hasPassword: hasPassword, on: new)
        count += 1
      }
    }
    #expect(count == (hasPassword ? 8 : Cases.count(64, quick: 12)) * 13)
  }

  private func check(
    _ items: [KeychainItem], _ own: Set<ProtectionClass>, _ damage: [(ProtectionClass, Int)],
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

    // By hand: what a class that the password alone opens, one of this device and one of the other come to.
    func isProven(_ protection: ProtectionClass) -> Bool {
      own.contains(protection) && damage.filter { $0.0 == protection }.count < 2
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
    let what = "of \(own.map(\.rawValue).sorted()), damaged \(damaged.sorted()), password \(hasPassword)"

    try HeldKeychain.empty(session.device)
    let before = try HeldKeychain(session)
    let plan = MigrationPlanner.plan(
      archived, onto: try Restorer.targetRows(of: session), policy: .replace,
      context: RestoreContext(backupHasPassword: hasPassword))
    #expect(plan.decisions.map(\.outcome) == expected, "\(what)")
    #expect(plan.isSameDevice == isSameDevice, "\(what)")
    try Restorer.restore(plan, onto: session)
    let check = PlanCheck(plan, of: items, before: before, after: try HeldKeychain(session))
    #expect(check.differences.isEmpty, "\(what)")
    for decision in plan.decisions where decision.outcome.reason == .deviceBound {
      #expect((decision.detail?.contains("Keyhaul cannot tell which") == true) == (isSameDevice == nil), "\(what)")
    }
  }
}
