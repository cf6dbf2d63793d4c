import Backups
import Foundation
import KeychainCrypto
import KeychainFormats
import KeychainRules
import TestSupport
import Testing
import VirtualDevice

@testable import KeyhaulKit

@Suite("Tampered protection classes in a backup without a password")
struct TamperedUnencryptedBackupTests {
  @Test("Without a password, no item moves, with any class in its blob")
  func classNumbers() throws {
    let phones = try TwoPhones(password: nil)
    for number in UInt32(0)...12 {
      let path = try phones.tamperingWriter.backUp(phones.old) { contents in
        try contents.editEntries { entries in
          for index in entries.indices {
            entries[index] = try entries[index].withClassNumber(KeyClass(rawValue: number))
          }
        }
      }
      let result = try phones.restore(path)
      #expect(result.restoredAccounts.isEmpty, "class \(number)")
      let expected: MigrationPlan.Outcome =
        switch number {
        case 1...4: .unreadable(.tagMismatch)
        case 6...8: .staysBehind(.backupNotEncrypted)
        case 5, 9...11: .staysBehind(.deviceBound)
        default: .unreadable(.noClassKey)
        }
      #expect(result.outcomes.values.allSatisfy { $0 == expected }, "class \(number)")
    }
  }

  @Test("Without a password, no item moves with any value of WRAP")
  func wrapBits() throws {
    let phones = try TwoPhones(password: nil)
    for bits in UInt32(0)...3 {
      for number in UInt32(5)...11 {
        let path = try phones.tamperingWriter.backUp(phones.old) { contents in
          let index = try #require(contents.keybag.classKeys.firstIndex { $0.keyClass?.rawValue == number })
          contents.keybag.classKeys[index].wrap = Keybag.WrapFlags(rawValue: bits)
        }
        let hasDeviceBit = bits & 1 == 1
        guard !hasDeviceBit else {
          #expect(try phones.restore(path).restoredAccounts.isEmpty, "class \(number), WRAP \(bits)")
          continue
        }
        // No device writes a key without the device's bit.
        let error = try keyhaulError { _ = try phones.restore(path) }
        #expect(error?.category == .refused, "class \(number), WRAP \(bits)")
        #expect(try KeychainSnapshot(phones.new.openTestSession()).rows.isEmpty)
      }
    }
  }

  @Test("Without a password, no item moves if keys are swapped")
  func swapped() throws {
    let phones = try TwoPhones(password: nil)
    for first in UInt32(1)...11 {
      for second in (first + 1)..<12 {
        let path = try phones.tamperingWriter.backUp(phones.old) { contents in
          let keys = contents.keybag.classKeys
          let firstIndex = try #require(keys.firstIndex { $0.keyClass?.rawValue == first })
          let secondIndex = try #require(keys.firstIndex { $0.keyClass?.rawValue == second })
          contents.keybag.classKeys[firstIndex] = keys[secondIndex].withClass(KeyClass(rawValue: first))
          contents.keybag.classKeys[secondIndex] = keys[firstIndex].withClass(KeyClass(rawValue: second))
        }
        // The key of a file class is not bound to a device, so it is invalid for a keychain class.
        guard first < 5, second > 4 else {
          #expect(try phones.restore(path).restoredAccounts.isEmpty, "\(first) and \(second)")
          continue
        }
        let error = try keyhaulError { _ = try phones.restore(path) }
        #expect(error?.category == .refused, "\(first) and \(second)")
        #expect(try KeychainSnapshot(phones.new.openTestSession()).rows.isEmpty)
      }
    }
  }

  @Test("Without a password, no item moves with the new phone's names and identifier")
  func names() throws {
    let phones = try TwoPhones(password: nil)
    let record = try phones.new.openTestSession().record
    let result = try phones.restore(phones.tamperingWriter.backUp(phones.old) { $0.device = BackupDevice(record) })
    #expect(result.restoredAccounts.isEmpty)
    #expect(result.isSameDevice == false)
    for protection in TwoPhones.migratable { #expect(result.outcomes[protection] == .staysBehind(.backupNotEncrypted)) }
    for protection in TwoPhones.deviceOnly { #expect(result.outcomes[protection] == .staysBehind(.deviceBound)) }
  }

  @Test("A manifest that claims encryption moves nothing", arguments: [nil, "", "guess"])
  func encrypted(password: String?) throws {
    let phones = try TwoPhones(password: nil)
    let path = try phones.setup.backUp(phones.old, password: nil, as: .directory)
    try editPropertyList(path + "/Manifest.plist") { $0["IsEncrypted"] = .boolean(true) }
    // The manifest and the files are unencrypted, so the backup can be read but not restored.
    let error = #expect(throws: (any Error).self) { _ = try phones.restore(path, password: .some(password)) }
    // The keybag can be unlocked without a password, so a given password is refused.
    #expect((error as? any ExplainedError)?.category == (password == "guess" ? .wrongPassword : .refused))
    #expect(try KeychainSnapshot(phones.new.openTestSession()).rows.isEmpty)
  }
}

@Suite("Devices with another device's identity")
struct CopiedIdentityTests {
  private func copy(_ files: [String], from old: VirtualDevice, to new: VirtualDevice) throws {
    for file in files {
      let target = URL(fileURLWithPath: new.directory + "/" + file)
      try Data(contentsOf: URL(fileURLWithPath: old.directory + "/" + file)).write(to: target)
    }
  }

  @Test("Another device's record does not make a phone the same device", arguments: [true, false])
  func record(hasPassword: Bool) throws {
    let phones = try TwoPhones(password: hasPassword ? TestSetup.password : nil)
    try copy(["device.json"], from: phones.old, to: phones.new)
    let path = try phones.tamperingWriter.backUp(phones.old) { _ in }
    #expect(try phones.new.openTestSession().record.udid == phones.old.openTestSession().record.udid)
    let result = try phones.restore(path)
    #expect(result.isSameDevice == false)
    #expect(result.restoredAccounts == (hasPassword ? TwoPhones.migratableAccounts : []))
    for protection in TwoPhones.deviceOnly { #expect(result.outcomes[protection] == .staysBehind(.deviceBound)) }
  }

  @Test("A phone with another device's keybag but not its hardware UID does not start")
  func keybag() throws {
    let phones = try TwoPhones()
    try copy(["device.json", "keybag", "memory"], from: phones.old, to: phones.new)
    #expect(throws: KeyhaulError.self) { try phones.new.openTestSession() }
  }

  @Test("A phone with the source device's hardware UID gets all items", arguments: [true, false])
  func hardware(hasPassword: Bool) throws {
    let phones = try TwoPhones(password: hasPassword ? TestSetup.password : nil)
    let path = try phones.tamperingWriter.backUp(phones.old) { _ in }
    // The keybag is bound to the hardware UID, without which the phone does not start.
    try copy(["hardware.uid", "keybag", "memory"], from: phones.old, to: phones.new)
    #expect(try phones.new.openTestSession().record.udid != phones.old.openTestSession().record.udid)
    let result = try phones.restore(path)
    #expect(result.isSameDevice == true)
    #expect(result.restoredAccounts == TwoPhones.migratableAccounts.union(TwoPhones.deviceOnlyAccounts))
  }
}
