import Backups
import Foundation
import KeychainCrypto
import KeychainFormats
import KeychainRules
import TestSupport
import Testing
import VirtualDevice

@testable import KeyhaulKit

@Suite("Pretending that an item may move, in a backup without a password")
struct PretendingWithoutPassword {
  @Test("nothing arrives, whatever class a blob claims")
  func classNumbers() throws {
    let phones = try TwoPhones(password: nil)
    for number in UInt32(0)...12 {
      let path = try phones.forge.backUp(phones.old) { contents in
        try contents.editEntries { entries in
          for index in entries.indices { entries[index] = try entries[index].claiming(KeyClass(rawValue: number)) }
        }
      }
      let end = try phones.restore(path)
      #expect(end.arrived.isEmpty, "class \(number)")
      let expected: MigrationPlan.Outcome =
        switch number {
        case 1...4: .unreadable(.tagMismatch)
        case 6...8: .staysBehind(.backupNotEncrypted)
        case 5, 9...11: .staysBehind(.deviceBound)
        default: .unreadable(.noClassKey)
        }
      #expect(end.outcomes.values.allSatisfy { $0 == expected }, "class \(number)")
    }
  }

  @Test("nothing arrives, whatever WRAP says")
  func wrapBits() throws {
    let phones = try TwoPhones(password: nil)
    for bits in UInt32(0)...3 {
      for number in UInt32(5)...11 {
        let path = try phones.forge.backUp(phones.old) { contents in
          let index = try #require(contents.keybag.classKeys.firstIndex { $0.keyClass?.rawValue == number })
          contents.keybag.classKeys[index].wrap = Keybag.WrapFlags(rawValue: bits)
        }
        guard bits & 1 == 0 else {
          #expect(try phones.restore(path).arrived.isEmpty, "class \(number), WRAP \(bits)")
          continue
        }
        // Without the hardware's bit no device wrote it.
        let error = try migrationError { _ = try phones.restore(path) }
        #expect(error?.category == .refused, "class \(number), WRAP \(bits)")
        #expect(try HeldKeychain(phones.new.held()).rows.isEmpty)
      }
    }
  }

  @Test("nothing arrives, whichever keys are swapped")
  func swapped() throws {
    let phones = try TwoPhones(password: nil)
    for first in UInt32(1)...11 {
      for second in (first + 1)..<12 {
        let path = try phones.forge.backUp(phones.old) { contents in
          let keys = contents.keybag.classKeys
          let a = try #require(keys.firstIndex { $0.keyClass?.rawValue == first })
          let b = try #require(keys.firstIndex { $0.keyClass?.rawValue == second })
          contents.keybag.classKeys[a] = keys[b].renamed(KeyClass(rawValue: first))
          contents.keybag.classKeys[b] = keys[a].renamed(KeyClass(rawValue: second))
        }
        // A key of the files in a class of the keychain is bound to no device, as no device writes it.
        guard first < 5, second > 4 else {
          #expect(try phones.restore(path).arrived.isEmpty, "\(first) and \(second)")
          continue
        }
        let error = try migrationError { _ = try phones.restore(path) }
        #expect(error?.category == .refused, "\(first) and \(second)")
        #expect(try HeldKeychain(phones.new.held()).rows.isEmpty)
      }
    }
  }

  @Test("nothing arrives where names and identifier are the new phone's")
  func names() throws {
    let phones = try TwoPhones(password: nil)
    let record = try phones.new.held().record
    let end = try phones.restore(phones.forge.backUp(phones.old) { $0.device = BackupDevice(record) })
    #expect(end.arrived.isEmpty)
    #expect(end.isSameDevice == false)
    for protection in TwoPhones.migratable { #expect(end.outcomes[protection] == .staysBehind(.backupNotEncrypted)) }
    for protection in TwoPhones.deviceOnly { #expect(end.outcomes[protection] == .staysBehind(.deviceBound)) }
  }

  @Test("the manifest says that it is encrypted", arguments: [nil, "", "guess"])
  func encrypted(password: String?) throws {
    let phones = try TwoPhones(password: nil)
    let path = try phones.desk.backUp(phones.old, password: nil, as: .directory)
    try editPropertyList(path + "/Manifest.plist") { $0["IsEncrypted"] = .boolean(true) }
    // Neither the list nor a file in it is encrypted: it can be read, and is not restored.
    let error = #expect(throws: (any Error).self) { _ = try phones.restore(path, password: .some(password)) }
    // Its keybag opens with none, and a password that is given is held against it.
    #expect((error as? any ExplainedError)?.category == (password == "guess" ? .wrongPassword : .refused))
    #expect(try HeldKeychain(phones.new.held()).rows.isEmpty)
  }
}

@Suite("A phone that takes another's identity")
struct BorrowedIdentity {
  private func copy(_ files: [String], from old: VirtualDevice, to new: VirtualDevice) throws {
    for file in files {
      let target = URL(fileURLWithPath: new.directory + "/" + file)
      try Data(contentsOf: URL(fileURLWithPath: old.directory + "/" + file)).write(to: target)
    }
  }

  @Test("its record alone makes it no same device", arguments: [true, false])
  func record(hasPassword: Bool) throws {
    let phones = try TwoPhones(password: hasPassword ? Desk.password : nil)
    try copy(["device.json"], from: phones.old, to: phones.new)
    let path = try phones.forge.backUp(phones.old) { _ in }
    #expect(try phones.new.held().record.udid == phones.old.held().record.udid)
    let end = try phones.restore(path)
    #expect(end.isSameDevice == false)
    #expect(end.arrived == (hasPassword ? TwoPhones.migratableAccounts : []))
    for protection in TwoPhones.deviceOnly { #expect(end.outcomes[protection] == .staysBehind(.deviceBound)) }
  }

  @Test("its keybag and memory without its hardware key leave a phone that does not start")
  func keybag() throws {
    let phones = try TwoPhones()
    try copy(["device.json", "keybag", "memory"], from: phones.old, to: phones.new)
    #expect(throws: KeyhaulError.self) { try phones.new.held() }
  }

  @Test("with its hardware key it is the same device, and everything arrives", arguments: [true, false])
  func hardware(hasPassword: Bool) throws {
    let phones = try TwoPhones(password: hasPassword ? Desk.password : nil)
    let path = try phones.forge.backUp(phones.old) { _ in }
    // The keybag belongs to the chip: without it the phone would not start.
    try copy(["hardware.uid", "keybag", "memory"], from: phones.old, to: phones.new)
    #expect(try phones.new.held().record.udid != phones.old.held().record.udid)
    let end = try phones.restore(path)
    #expect(end.isSameDevice == true)
    #expect(end.arrived == TwoPhones.migratableAccounts.union(TwoPhones.deviceOnlyAccounts))
  }
}
