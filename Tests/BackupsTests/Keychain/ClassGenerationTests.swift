import Basics
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Testing

@testable import Backups

@Suite("Items of later key generations")
struct ClassGenerationTests {
  @Test("An item of a later key generation is counted by its class, and no other key decrypts it")
  func laterGeneration() throws {
    let backup = try EditableBackup(items: [.password("anna"), .password("berta")]) { entries in
      var entries = entries
      // The data begins with two little-endian words, the version and the class. Class 6 becomes class 22.
      entries[0].blob?[4] |= 0x10
      return entries
    }
    let archive = try backup.open()
    let opened = try archive.open(with: archive.unlock(password: Secret(utf8: EditableBackup.password)))
    #expect(opened.items.map(\.protection) == [.whenUnlocked, .whenUnlocked])
    #expect(opened.items.map(\.keyClass) == [KeyClass(rawValue: 0x16), .whenUnlocked])
    #expect(opened.itemCounts.countByProtection == [.whenUnlocked: 2])
    #expect(opened.items.map { opened.reason(of: $0) } == [.noClassKey, nil])
    #expect(
      opened.damage.map(\.description)
        == ["the keybag has no key of class 22 (when unlocked, key generation 1), and 1 item needs one"])
  }
}
