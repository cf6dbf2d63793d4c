import Backups
import KeychainCrypto
import KeychainFormats
import KeychainRules
import TestSupport
import Testing

@testable import KeyhaulKit

@Suite("Damaged items")
struct DamagedItemTests {
  private struct Keys: ~Copyable {
    let classKeys: ClassKeys

    init() throws {
      let device = try DeviceKey(Secret(copying: [UInt8](repeating: 5, count: 16)))
      classKeys = try BackupKeybag.make(
        password: secret("pw"), deviceKey: device, rounds: 1, random: SeededRandomSource(seed: "damage")
      ).classKeys
    }

    /// Encrypts an item for its class. An item without a class is encrypted for class 6 (`whenUnlocked`).
    func entry(_ item: KeychainItem) throws -> KeychainBackupFile.Entry {
      let keyClass = (item.protection ?? .whenUnlocked).keyClass
      let blob = try classKeys.seal(try item.derDictionary(), keyClass: keyClass, as: .backup)
      return .init(kind: item.kind, blob: blob.serialized())
    }

    func plan(_ entries: [KeychainBackupFile.Entry]) throws -> MigrationPlan {
      let items = try BackupItem.openAll(in: .init(keybagUUID: nil, entries: entries), with: classKeys)
      return MigrationPlanner.plan(items, onto: [], policy: .replace)
    }
  }

  @Test(
    "A flipped bit makes only its own item unreadable",
    arguments: [ProtectionClass.whenUnlocked, .whenUnlockedThisDeviceOnly])
  func everyBit(_ protection: ProtectionClass) throws {
    let keys = try Keys()
    let entry = try keys.entry(.password("damaged", protection))
    let intact = try keys.entry(.password("intact", .whenUnlockedThisDeviceOnly))
    let count = try #require(entry.blob?.count)
    // The class follows the version, in little-endian order. This bit changes class 9 to class 11.
    let classBit = 4 * 8 + 1
    for bit in 0..<(count * 8) {
      var damaged = entry
      damaged.blob = entry.blob?.flipping(bit: bit)
      let plan = try keys.plan([damaged, intact])
      // No item of class 11 is decrypted, so the damage looks like another device's key.
      if protection == .whenUnlockedThisDeviceOnly, bit == classBit {
        #expect(plan.decisions[0].outcome == .staysBehind(.deviceBound) && plan.isSameDevice == nil)
        #expect(plan.decisions[0].detail?.contains("Keyhaul cannot tell which") == true)
        continue
      }
      guard case .unreadable = plan.decisions[0].outcome, plan.decisions[0].identity.account == nil else {
        Issue.record("bit \(bit): \(plan.decisions[0].outcome)")
        continue
      }
      #expect(plan.decisions[1].outcome == .migrates(.new))
      #expect(plan.imports.count == 1)
    }
  }

  @Test("An item that is cut at any length is unreadable")
  func everyLength() throws {
    let keys = try Keys()
    let entry = try keys.entry(.password("cut"))
    let blob = try #require(entry.blob)
    for length in blob.indices {
      var cutEntry = entry
      cutEntry.blob = Array(blob[..<length])
      guard case .unreadable = try keys.plan([cutEntry]).decisions[0].outcome else {
        Issue.record("length \(length)")
        continue
      }
    }
  }

  @Test("Unknown versions and entries without data are unreadable")
  func versions() throws {
    let keys = try Keys()
    let entry = try keys.entry(.password("a"))
    for version in [UInt8(1), 4, 5, 6, 7, 8, 9, 200] {
      var unsupported = entry
      unsupported.blob?[0] = version
      let decision = try keys.plan([unsupported]).decisions[0]
      #expect(decision.outcome == .unreadable(.unsupportedVersion))
      #expect(decision.detail?.hasPrefix("version \(version)") == true)
    }
    let missing = try keys.plan([.init(kind: .key, blob: nil)]).decisions[0]
    #expect(missing.outcome == .unreadable(.malformed))
    #expect(missing.protection == nil)
    #expect(missing.detail == "the entry contains no data")
  }

  @Test("An item of version 0 is a secret without a name, which cannot be restored")
  func versionZero() throws {
    let keys = try Keys()
    // An item of another version does not become a valid one of version 0 if only its version byte changes.
    var entry = try keys.entry(.password("a"))
    entry.blob?[0] = 0
    #expect(try keys.plan([entry]).decisions[0].outcome == .unreadable(.malformed))
    let item = BackupItem(
      index: 0, kind: .genericPassword, protection: .whenUnlocked, blob: .init(byteCount: 68, offset: 100),
      classKey: .available,
      opening: .opened(KeychainItem(kind: .genericPassword, attributes: [:]).with(secret: "hunter2")),
      isSecretOnly: true)
    let decision = MigrationPlanner.plan([item], onto: [], policy: .merge).decisions[0]
    #expect(decision.outcome == .unreadable(.unsupportedVersion))
    #expect(decision.detail == "version 0, a secret without a name; 68 bytes at 100")
    // `decision` is about a decrypted item that does not name an app, and `encrypted` is about an unreadable one.
    let encrypted = try keys.plan([.init(kind: .key, blob: nil)]).decisions[0]
    let plan = MigrationPlan(
      decisions: [encrypted, decision], removed: [], policy: .merge, isSameDevice: false, imports: [],
      removedRowCount: 0)
    let summaries = plan.byApp(AppDirectory([]))
    #expect(summaries.map(\.app.kind) == [.withoutGroup, .encrypted])
    #expect(summaries.map(\.app.displayName) == ["(names no app)", "(encrypted)"])
    let losses = AppsNeedingSignIn(summaries)
    #expect(losses.apps.isEmpty && losses.unnamedCount == 1 && losses.encryptedCount == 1)
  }

  @Test("An item of version 2 is a property list, and is restored")
  func versionTwo() throws {
    let keys = try Keys()
    let entry = try entryOfVersion2(
      ["acct": .string("old"), "agrp": .string("app"), "pdmn": .string("ak")], keys: keys)
    #expect(try keys.plan([entry]).decisions[0].outcome == .migrates(.new))
  }

  @Test("An item that cannot be stored on the device is left out")
  func unencodable() throws {
    let keys = try Keys()
    let entry = try entryOfVersion2(
      ["acct": .string("old"), "agrp": .string("app"), "pdmn": .string("ak"), "future": .real(1.5)], keys: keys)
    let plan = try keys.plan([entry, try keys.entry(.password("intact"))])
    #expect(plan.decisions.map(\.outcome) == [.unreadable(.malformed), .migrates(.new)])
  }

  private func entryOfVersion2(
    _ attributes: PropertyDictionary, keys: borrowing Keys
  ) throws -> KeychainBackupFile.Entry {
    var properties = attributes
    properties["v_Data"] = .data([1, 2])
    let plaintext = SensitiveBytes(copying: try BinaryPlist.encode(.dictionary(properties)))
    let sealed = try keys.classKeys.seal(plaintext, keyClass: .whenUnlocked, as: .backup)
    let blob = try ItemBlob(
      version: .v2, hasStaticIV: false, keyClass: sealed.keyClass, wrappedKey: sealed.wrappedKey,
      ciphertext: sealed.ciphertext, tag: sealed.tag)
    return .init(kind: .genericPassword, blob: blob.serialized())
  }

  @Test("An item without a group or class, or with an invalid attribute, is malformed")
  func invalidAttributes() throws {
    let keys = try Keys()
    for item in [
      KeychainItem.password("a").without(.accessGroup), KeychainItem.password("a").without(.protection),
      .password("a", attributes: [.accessGroup: .data([0xFF])]),
      .password("a", attributes: [.account: .array([])]),
      .password("a", attributes: [.modificationDate: .string("today")]),
      .password("a", attributes: [.multiUser: .data([1])]),
    ] {
      let decision = try keys.plan([try keys.entry(item)]).decisions[0]
      #expect(decision.outcome == .unreadable(.malformed), "\(item.attributes)")
      #expect(decision.detail?.isEmpty == false)
    }
  }
}
