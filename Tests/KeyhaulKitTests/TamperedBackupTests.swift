import Backups
import KeychainCrypto
import KeychainFormats
import KeychainRules
import TestSupport
import Testing
import VirtualDevice

@testable import KeyhaulKit

@Suite("Tampered protection classes in a backup with a password")
struct TamperedBackupTests {
  /// The classes whose keys are also wrapped with the device key: a class of files (5), and the classes of
  /// this-device-only items.
  private static let boundClasses: Set<UInt32> = [5, 9, 10, 11]

  private func restoreTampered(
    _ phones: TwoPhones, _ edit: (inout BackupContents) throws -> Void
  ) throws -> TwoPhones.RestoreResult {
    try phones.restore(phones.tamperingWriter.backUp(phones.old, changing: edit))
  }

  /// Checks that a backup with a changed key of class 3 is refused. All files are encrypted with this key, so no file and
  /// no item can be decrypted.
  private func expectNoFileOpens(_ phones: TwoPhones, _ edit: (inout BackupContents) throws -> Void) throws {
    let error = try keyhaulError { _ = try restoreTampered(phones, edit) }
    #expect(error?.category == .damaged)
    #expect(try KeychainSnapshot(phones.new.openTestSession()).rows.isEmpty)
  }

  @Test("In an unchanged backup, migratable items move and this-device-only items are device-bound")
  func unchanged() throws {
    let phones = try TwoPhones()
    let result = try restoreTampered(phones) { _ in }
    #expect(result.restoredAccounts == TwoPhones.migratableAccounts)
    #expect(result.isSameDevice == false)
    for protection in TwoPhones.deviceOnly { #expect(result.outcomes[protection] == .staysBehind(.deviceBound)) }
  }

  @Test(
    "A this-device-only item with a different class number in its blob does not move", arguments: TwoPhones.deviceOnly)
  func classNumber(_ protection: ProtectionClass) throws {
    let phones = try TwoPhones()
    let session = try phones.old.openTestSession()
    let prepared = try BackupExporter.prepare(session, password: secret(TestSetup.password), rounds: 1)
    session.invalidate()
    // The last three numbers have a key generation in the upper bits, which only a device's own database has.
    for number in (UInt32(0)...13) + [0x19, 0x26, 0xFFFF_FFFF] where KeyClass(rawValue: number) != protection.keyClass {
      let path = try phones.tamperingWriter.write(prepared, named: "class-\(number)") { contents in
        try contents.editEntries { entries in
          let index = try #require(entries.firstIndex { $0.keyClass == protection.keyClass })
          entries[index] = try entries[index].withClassNumber(KeyClass(rawValue: number))
        }
      }
      let result = try phones.restore(path)
      #expect(result.restoredAccounts == TwoPhones.migratableAccounts)
      let expected: MigrationPlan.Outcome =
        switch number {
        // The password unwraps these keys, but they are not the item's keys.
        case 1, 2, 3, 4, 6, 7, 8: .unreadable(.tagMismatch)
        // These keys also need the old phone.
        case 5, 9, 10, 11: .staysBehind(.deviceBound)
        default: .unreadable(.noClassKey)
        }
      #expect(result.outcomes[protection] == expected, "class \(number)")
    }
  }

  @Test("A this-device-only item cannot be encrypted again without the old phone")
  func noPlaintext() throws {
    let phones = try TwoPhones()
    let old = try phones.old.openTestSession()
    let new = try phones.new.openTestSession()
    let prepared = try BackupExporter.prepare(old, password: secret(TestSetup.password), rounds: 1)
    let entries = try KeychainBackupFile(parsing: prepared.contents.keychainFile).entries
    let attackerKeys = try prepared.contents.keybag.unlock(password: secret(TestSetup.password), deviceKey: nil)
    let withNewPhone = try prepared.contents.keybag.unlock(
      password: secret(TestSetup.password), deviceKey: new.deviceKey())
    let withOldPhone = try prepared.contents.keybag.unlock(
      password: secret(TestSetup.password), deviceKey: old.deviceKey())
    for protection in TwoPhones.deviceOnly {
      let blob = try ItemBlob(parsing: try #require(entries.first { $0.keyClass == protection.keyClass }?.blob))
      #expect(throws: ItemCryptoError(.deviceBound, keyClass: protection.keyClass)) { try attackerKeys.open(blob) }
      #expect(throws: ItemCryptoError(.keyUnwrapFailed, keyClass: protection.keyClass)) { try withNewPhone.open(blob) }
      #expect(try withOldPhone.open(blob).count > 0)
      // No other key that the password unwraps can unwrap the item's key.
      for other in TwoPhones.migratable {
        let moved = try ItemBlob(
          hasStaticIV: false, keyClass: other.keyClass, wrappedKey: blob.wrappedKey, ciphertext: blob.ciphertext,
          tag: blob.tag)
        #expect(throws: ItemCryptoError(.keyUnwrapFailed, keyClass: other.keyClass)) { try withNewPhone.open(moved) }
      }
    }
  }

  @Test("A ciphertext with the wrapped key of a migratable item cannot be decrypted")
  func ciphertextUnderAnotherKey() throws {
    let phones = try TwoPhones()
    let result = try restoreTampered(phones) { contents in
      try contents.editEntries { entries in
        // Entries 0 to 2 are migratable, and 3 to 5 are this-device-only (`TwoPhones`).
        let migratable = try ItemBlob(parsing: try #require(entries[0].blob))
        let bound = try ItemBlob(parsing: try #require(entries[3].blob))
        entries[3].blob = try ItemBlob(
          hasStaticIV: false, keyClass: migratable.keyClass, wrappedKey: migratable.wrappedKey,
          ciphertext: bound.ciphertext,
          tag: bound.tag
        ).serialized()
      }
    }
    #expect(result.restoredAccounts == TwoPhones.migratableAccounts)
    #expect(result.outcomes[.whenUnlockedThisDeviceOnly] == .unreadable(.tagMismatch))
  }

  @Test("An item whose pdmn and blob have different classes is malformed")
  func contradiction() throws {
    let phones = try TwoPhones()
    let session = try phones.old.openTestSession()
    let prepared = try BackupExporter.prepare(session, password: secret(TestSetup.password), rounds: 1)
    session.invalidate()
    let attackerKeys = try prepared.contents.keybag.unlock(password: secret(TestSetup.password), deviceKey: nil)
    let contradictions: [(inItem: ProtectionClass, inBlob: KeyClass)] = [
      (.whenUnlockedThisDeviceOnly, .whenUnlocked), (.whenUnlocked, .afterFirstUnlock),
      (.whenPasscodeSetThisDeviceOnly, .always),
    ]
    for (inItem, inBlob) in contradictions {
      let plaintext = try KeychainItem.password("forged", inItem).derDictionary()
      let blob = try attackerKeys.seal(plaintext, keyClass: inBlob, as: .backup)
      let path = try phones.tamperingWriter.write(prepared, named: "contradiction") { contents in
        try contents.editEntries { $0[3].blob = blob.serialized() }
      }
      let result = try phones.restore(path)
      #expect(result.outcomes[.whenUnlockedThisDeviceOnly] == .unreadable(.malformed))
      #expect(result.restoredAccounts == TwoPhones.migratableAccounts)
    }
  }

  @Test("The new phone's name, identifier and serial number in the manifest move no item")
  func names() throws {
    let phones = try TwoPhones()
    let record = try phones.new.openTestSession().record
    let result = try restoreTampered(phones) { $0.device = BackupDevice(record) }
    #expect(result.isSameDevice == false)
    #expect(result.restoredAccounts == TwoPhones.migratableAccounts)
    for protection in TwoPhones.deviceOnly { #expect(result.outcomes[protection] == .staysBehind(.deviceBound)) }
  }

  @Test("No value of WRAP moves a this-device-only item")
  func wrapBits() throws {
    let phones = try TwoPhones()
    for number in UInt32(1)...11 {
      // The bits are 1 for the device's key and 2 for the password's.
      let original: UInt32 = Self.boundClasses.contains(number) ? 3 : 2
      for bits in UInt32(0)...3 {
        func edit(_ contents: inout BackupContents) throws {
          let index = try #require(contents.keybag.classKeys.firstIndex { $0.keyClass?.rawValue == number })
          #expect(contents.keybag.classKeys[index].wrap?.rawValue == original)
          contents.keybag.classKeys[index].wrap = Keybag.WrapFlags(rawValue: bits)
        }
        guard number != 3 || bits == original else {
          try expectNoFileOpens(phones, edit)
          continue
        }
        // With a device wrap, migratable items would seem to stay behind, while the target's items would be removed.
        guard original == 3 || bits != 3 else {
          #expect(throws: (any Error).self, "class \(number)") { _ = try restoreTampered(phones, edit) }
          #expect(try KeychainSnapshot(phones.new.openTestSession()).rows.isEmpty)
          continue
        }
        let result = try restoreTampered(phones, edit)
        let changed = bits == original ? nil : ProtectionClass(keyClass: KeyClass(rawValue: number))
        #expect(result.outcomes == outcomes(changed: changed, wrap: bits), "class \(number), WRAP \(bits)")
      }
    }
  }

  /// Returns the expected outcomes if the WRAP of a class has different bits.
  private func outcomes(
    changed: ProtectionClass?, wrap bits: UInt32
  ) -> [ProtectionClass: MigrationPlan.Outcome] {
    var outcomes: [ProtectionClass: MigrationPlan.Outcome] = [:]
    for protection in TwoPhones.migratable { outcomes[protection] = .migrates(.new) }
    for protection in TwoPhones.deviceOnly { outcomes[protection] = .staysBehind(.deviceBound) }
    if let changed {
      outcomes[changed] =
        switch bits {
        // Without the password's bit, the key would have 32 bytes instead of 40.
        case 0, 1: .unreadable(.noClassKey)
        // The key is treated as not wrapped with the device's key, so it decrypts nothing.
        default: .unreadable(.tagMismatch)
        }
    }
    return outcomes
  }

  @Test("Swapped wrapped keys of two classes move no this-device-only item")
  func swappedKeys() throws {
    let phones = try TwoPhones()
    for first in UInt32(1)...11 {
      for second in (first + 1)..<12 {
        try expectOnlyOthersArrive(phones, swapping: first, second) { contents in
          let keys = contents.keybag.classKeys
          let firstIndex = try #require(keys.firstIndex { $0.keyClass?.rawValue == first })
          let secondIndex = try #require(keys.firstIndex { $0.keyClass?.rawValue == second })
          contents.keybag.classKeys[firstIndex].wrappedKey = keys[secondIndex].wrappedKey
          contents.keybag.classKeys[secondIndex].wrappedKey = keys[firstIndex].wrappedKey
        }
      }
    }
  }

  @Test("Swapped class numbers move no this-device-only item")
  func swappedNumbers() throws {
    let phones = try TwoPhones()
    for first in UInt32(1)...11 {
      for second in (first + 1)..<12 {
        let swapped = { (contents: inout BackupContents) in
          contents.keybag.classKeys = contents.keybag.classKeys.map { key in
            switch key.keyClass?.rawValue {
            case first: key.withClass(KeyClass(rawValue: second))
            case second: key.withClass(KeyClass(rawValue: first))
            default: key
            }
          }
        }
        let isOneBound = Self.boundClasses.contains(first) != Self.boundClasses.contains(second)
        if isOneBound, first != 3, second != 3 {
          // One of the two classes now has a device wrap that no device uses, so nothing is restored.
          #expect(throws: (any Error).self, "\(first) and \(second)") { _ = try restoreTampered(phones, swapped) }
          #expect(try KeychainSnapshot(phones.new.openTestSession()).rows.isEmpty)
          continue
        }
        try expectOnlyOthersArrive(phones, swapping: first, second, swapped)
      }
    }
  }

  /// Checks that only migratable items of the other classes arrive.
  private func expectOnlyOthersArrive(
    _ phones: TwoPhones, swapping first: UInt32, _ second: UInt32, _ edit: (inout BackupContents) throws -> Void
  ) throws {
    guard ![first, second].contains(3) else { return try expectNoFileOpens(phones, edit) }
    let result = try restoreTampered(phones, edit)
    let others = TwoPhones.migratable.filter { ![first, second].contains($0.keyClass.rawValue) }
    #expect(result.restoredAccounts == Set(others.map(\.rawValue)), "\(first) and \(second)")
    for protection in TwoPhones.deviceOnly {
      #expect(!result.restoredAccounts.contains(protection.rawValue))
      guard ![first, second].contains(protection.keyClass.rawValue) else { continue }
      #expect(result.outcomes[protection] == .staysBehind(.deviceBound), "\(first) and \(second)")
    }
  }

  @Test("A manifest that denies the encryption is rejected")
  func notEncrypted() throws {
    let phones = try TwoPhones()
    let path = try phones.setup.backUp(phones.old, password: TestSetup.password, as: .directory)
    try editPropertyList(path + "/Manifest.plist") { $0["IsEncrypted"] = .boolean(false) }
    // Without a password, no class key can be unwrapped.
    #expect(try keyhaulError { _ = try phones.restore(path) }?.code == .passwordNotNeeded)
    #expect(try keyhaulError { _ = try phones.restore(path, password: .some(nil)) }?.category == .damaged)
    #expect(try KeychainSnapshot(phones.new.openTestSession()).rows.isEmpty)
  }
}
