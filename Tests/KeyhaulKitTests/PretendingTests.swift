import Backups
import KeychainCrypto
import KeychainFormats
import KeychainRules
import TestSupport
import Testing
import VirtualDevice

@testable import KeyhaulKit

@Suite("Pretending that an item may move, in a backup with a password")
struct Pretending {
  private func end(_ phones: TwoPhones, _ edit: (inout BackupContents) throws -> Void) throws -> TwoPhones.End {
    try phones.restore(phones.forge.backUp(phones.old, changing: edit))
  }

  /// The files themselves are of class 3: where its key is gone, no file opens, and so no item.
  private func expectNoFileOpens(_ phones: TwoPhones, _ edit: (inout BackupContents) throws -> Void) throws {
    let error = try openingError { _ = try end(phones, edit) }
    #expect(error?.category == .damaged)
    #expect(try HeldKeychain(phones.new.held()).rows.isEmpty)
  }

  @Test("unchanged, the migratable items arrive and the others stay, device-bound")
  func unchanged() throws {
    let phones = try TwoPhones()
    let end = try end(phones) { _ in }
    #expect(end.arrived == TwoPhones.migratableAccounts)
    #expect(end.isSameDevice == false)
    for protection in TwoPhones.deviceOnly { #expect(end.outcomes[protection] == .staysBehind(.deviceBound)) }
  }

  @Test("another class number in the blob of a this-device-only item", arguments: TwoPhones.deviceOnly)
  func classNumber(_ protection: ProtectionClass) throws {
    let phones = try TwoPhones()
    let session = try phones.old.held()
    let prepared = try BackupExporter.prepare(session, password: secret(Desk.password), rounds: 1)
    session.invalidate()
    for number in (UInt32(0)...13) + [0x19, 0x26, 0xFFFF_FFFF] where KeyClass(rawValue: number) != protection.keyClass {
      let path = try phones.forge.write(prepared, named: "class-\(number)") { contents in
        try contents.editEntries { entries in
          let index = try #require(entries.firstIndex { $0.keyClass == protection.keyClass })
          entries[index] = try entries[index].claiming(KeyClass(rawValue: number))
        }
      }
      let end = try phones.restore(path)
      #expect(end.arrived == TwoPhones.migratableAccounts)
      let expected: MigrationPlan.Outcome =
        switch number {
        // The password opens these keys, and they are not the item's.
        case 1, 2, 3, 4, 6, 7, 8: .unreadable(.tagMismatch)
        // These need the old phone as well.
        case 5, 9, 10, 11: .staysBehind(.deviceBound)
        default: .unreadable(.noClassKey)
        }
      #expect(end.outcomes[protection] == expected, "class \(number)")
    }
  }

  @Test("the item sealed again: without the old phone there is no plaintext to seal")
  func noPlaintext() throws {
    let phones = try TwoPhones()
    let old = try phones.old.held()
    let new = try phones.new.held()
    let prepared = try BackupExporter.prepare(old, password: secret(Desk.password), rounds: 1)
    let entries = try KeychainBackupFile(parsing: prepared.contents.keychainFile).entries
    let forger = try prepared.contents.keybag.unlock(password: secret(Desk.password), deviceKey: nil)
    let withNewPhone = try prepared.contents.keybag.unlock(
      password: secret(Desk.password), deviceKey: new.deviceKey())
    let withOldPhone = try prepared.contents.keybag.unlock(
      password: secret(Desk.password), deviceKey: old.deviceKey())
    for protection in TwoPhones.deviceOnly {
      let blob = try ItemBlob(parsing: try #require(entries.first { $0.keyClass == protection.keyClass }?.blob))
      #expect(throws: ItemCryptoError(.deviceBound, keyClass: protection.keyClass)) { try forger.open(blob) }
      #expect(throws: ItemCryptoError(.keyUnwrapFailed, keyClass: protection.keyClass)) { try withNewPhone.open(blob) }
      #expect(try withOldPhone.open(blob).count > 0)
      // Nor is there a way round the class key: every other key that the password opens fails on the item's key.
      for other in TwoPhones.migratable {
        let moved = try ItemBlob(
          hasStaticIV: false, keyClass: other.keyClass, wrappedKey: blob.wrappedKey, ciphertext: blob.ciphertext,
          tag: blob.tag)
        #expect(throws: ItemCryptoError(.keyUnwrapFailed, keyClass: other.keyClass)) { try withNewPhone.open(moved) }
      }
    }
  }

  @Test("the item's ciphertext under the key of an item that moves")
  func ciphertextUnderAnotherKey() throws {
    let phones = try TwoPhones()
    let end = try end(phones) { contents in
      try contents.editEntries { entries in
        let free = try ItemBlob(parsing: try #require(entries[0].blob))
        let bound = try ItemBlob(parsing: try #require(entries[3].blob))
        entries[3].blob = try ItemBlob(
          hasStaticIV: false, keyClass: free.keyClass, wrappedKey: free.wrappedKey, ciphertext: bound.ciphertext,
          tag: bound.tag
        ).serialized()
      }
    }
    #expect(end.arrived == TwoPhones.migratableAccounts)
    #expect(end.outcomes[.whenUnlockedThisDeviceOnly] == .unreadable(.tagMismatch))
  }

  @Test("an item whose pdmn and blob name different classes is malformed, either way round")
  func contradiction() throws {
    let phones = try TwoPhones()
    let session = try phones.old.held()
    let prepared = try BackupExporter.prepare(session, password: secret(Desk.password), rounds: 1)
    session.invalidate()
    let forger = try prepared.contents.keybag.unlock(password: secret(Desk.password), deviceKey: nil)
    for (inside, outside) in [
      (ProtectionClass.whenUnlockedThisDeviceOnly, KeyClass.whenUnlocked),
      (.whenUnlocked, .afterFirstUnlock), (.whenPasscodeSetThisDeviceOnly, .always),
    ] {
      let plaintext = try KeychainItem.password("forged", inside).derDictionary()
      let blob = try forger.seal(plaintext, keyClass: outside, as: .backup)
      let path = try phones.forge.write(prepared, named: "contradiction") { contents in
        try contents.editEntries { $0[3].blob = blob.serialized() }
      }
      let end = try phones.restore(path)
      #expect(end.outcomes[.whenUnlockedThisDeviceOnly] == .unreadable(.malformed))
      #expect(end.arrived == TwoPhones.migratableAccounts)
    }
  }

  @Test("the new phone's names, identifier and serial number in the manifest")
  func names() throws {
    let phones = try TwoPhones()
    let record = try phones.new.held().record
    let end = try end(phones) { $0.device = BackupDevice(record) }
    #expect(end.isSameDevice == false)
    #expect(end.arrived == TwoPhones.migratableAccounts)
    for protection in TwoPhones.deviceOnly { #expect(end.outcomes[protection] == .staysBehind(.deviceBound)) }
  }

  @Test("every class with every value of WRAP")
  func wrapBits() throws {
    let phones = try TwoPhones()
    for number in UInt32(1)...11 {
      for bits in UInt32(0)...3 {
        let original: UInt32 = [5, 9, 10, 11].contains(number) ? 3 : 2
        func edit(_ contents: inout BackupContents) throws {
          let index = try #require(contents.keybag.classKeys.firstIndex { $0.keyClass?.rawValue == number })
          #expect(contents.keybag.classKeys[index].wrap?.rawValue == original)
          contents.keybag.classKeys[index].wrap = Keybag.WrapFlags(rawValue: bits)
        }
        guard number != 3 || bits == original else {
          try expectNoFileOpens(phones, edit)
          continue
        }
        // Hardware that such a key never needs: its items would seem to stay, and those of the target would make way.
        guard original == 3 || bits != 3 else {
          #expect(throws: (any Error).self, "class \(number)") { _ = try self.end(phones, edit) }
          #expect(try HeldKeychain(phones.new.held()).rows.isEmpty)
          continue
        }
        let end = try end(phones, edit)
        var expected: [ProtectionClass: MigrationPlan.Outcome] = [:]
        for protection in TwoPhones.migratable { expected[protection] = .migrates(.new) }
        for protection in TwoPhones.deviceOnly { expected[protection] = .staysBehind(.deviceBound) }
        if let touched = ProtectionClass(keyClass: KeyClass(rawValue: number)), bits != original {
          expected[touched] =
            switch bits {
            // Without the password's bit there would have to be 32 bytes, not 40.
            case 0, 1: .unreadable(.noClassKey)
            // The key is taken for one without the hardware's layer: it opens nothing.
            default: .unreadable(.tagMismatch)
            }
        }
        #expect(end.outcomes == expected, "class \(number), WRAP \(bits)")
      }
    }
  }

  @Test("the wrapped keys of every two classes swapped")
  func swappedKeys() throws {
    let phones = try TwoPhones()
    for first in UInt32(1)...11 {
      for second in (first + 1)..<12 {
        try expectOnlyUntouched(phones, first, second) { contents in
          let keys = contents.keybag.classKeys
          let a = try #require(keys.firstIndex { $0.keyClass?.rawValue == first })
          let b = try #require(keys.firstIndex { $0.keyClass?.rawValue == second })
          contents.keybag.classKeys[a].wrappedKey = keys[b].wrappedKey
          contents.keybag.classKeys[b].wrappedKey = keys[a].wrappedKey
        }
      }
    }
  }

  @Test("the numbers of every two classes swapped")
  func swappedNumbers() throws {
    let phones = try TwoPhones()
    for first in UInt32(1)...11 {
      for second in (first + 1)..<12 {
        let swapped = { (contents: inout BackupContents) in
          contents.keybag.classKeys = contents.keybag.classKeys.map { key in
            switch key.keyClass?.rawValue {
            case first: key.renamed(KeyClass(rawValue: second))
            case second: key.renamed(KeyClass(rawValue: first))
            default: key
            }
          }
        }
        let bound: Set<UInt32> = [5, 9, 10, 11]
        if bound.contains(first) != bound.contains(second), first != 3, second != 3 {
          // One of them has the hardware's layer now, which no device gives it, and nothing is restored.
          #expect(throws: (any Error).self, "\(first) and \(second)") { _ = try end(phones, swapped) }
          #expect(try HeldKeychain(phones.new.held()).rows.isEmpty)
          continue
        }
        try expectOnlyUntouched(phones, first, second, swapped)
      }
    }
  }

  /// Migratable items of the other classes arrive; nothing for one device alone does.
  private func expectOnlyUntouched(
    _ phones: TwoPhones, _ first: UInt32, _ second: UInt32, _ edit: (inout BackupContents) throws -> Void
  ) throws {
    guard ![first, second].contains(3) else { return try expectNoFileOpens(phones, edit) }
    let end = try end(phones, edit)
    let untouched = TwoPhones.migratable.filter { ![first, second].contains($0.keyClass.rawValue) }
    #expect(end.arrived == Set(untouched.map(\.rawValue)), "\(first) and \(second)")
    for protection in TwoPhones.deviceOnly {
      #expect(!end.arrived.contains(protection.rawValue))
      guard ![first, second].contains(protection.keyClass.rawValue) else { continue }
      #expect(end.outcomes[protection] == .staysBehind(.deviceBound), "\(first) and \(second)")
    }
  }

  @Test("the manifest says that it is not encrypted")
  func notEncrypted() throws {
    let phones = try TwoPhones()
    let path = try phones.desk.backUp(phones.old, password: Desk.password, as: .directory)
    try editPropertyList(path + "/Manifest.plist") { $0["IsEncrypted"] = .boolean(false) }
    // The password is of another backup, and without one no class key of the bag unwraps.
    #expect(try openingError { _ = try phones.restore(path) }?.code == .passwordNotNeeded)
    #expect(try openingError { _ = try phones.restore(path, password: .some(nil)) }?.category == .damaged)
    #expect(try HeldKeychain(phones.new.held()).rows.isEmpty)
  }
}
