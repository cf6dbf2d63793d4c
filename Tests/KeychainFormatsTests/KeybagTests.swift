import Basics
import KeychainFormats
import TestSupport
import Testing

@Suite("Real keybags")
struct KeybagTests {
  @Test("asymmetric_backup_keybag: Apple's keybag has the published content and survives a round trip byte for byte")
  func asymmetricBag() throws {
    let vector = try TestVectors.section("asymmetric_backup_keybag")
    let bytes = try vector["keybag"].bytes
    let expected = try vector["expect"]
    let bag = try Keybag(parsing: bytes)
    #expect(bag.serialized() == bytes)
    #expect(bag.version == UInt32(try expected["VERS"].integer))
    #expect(bag.type == .asymmetricBackup)
    #expect(bag.wrap == [])
    #expect(bag.iterations == UInt32(try expected["ITER"].integer))
    #expect(bag.hmacKey == [UInt8](repeating: 0, count: 40))
    #expect(
      try bag.classKeys.map { try Int(#require($0.keyClass).rawValue) }
        == expected["class_order"].elements.map { try $0.integer })
    let classesWithBothWraps = Set(
      try expected["WRAP_3_classes"].elements.map { KeyClass(rawValue: UInt32(try $0.integer)) })
    for classKey in bag.classKeys {
      let keyClass = try #require(classKey.keyClass)
      #expect(classKey.wrap == (classesWithBothWraps.contains(keyClass) ? [.device, .password] : .password))
      #expect(classKey.keyType == .curve25519)
      #expect(classKey.wrappedKey?.count == 40)
      #expect(classKey.publicKey?.count == 32)
    }
    try bag.validate()
  }

  @Test("unencrypted_backup_keybag: every keychain class of two unencrypted backups has the device wrap")
  func unencryptedBags() throws {
    for vector in try TestVectors.list("unencrypted_backup_keybag") {
      let bytes = try vector["keybag"].bytes
      let bag = try Keybag(parsing: bytes)
      #expect(bag.serialized() == bytes)
      #expect(bag.type == .backup)
      #expect(bag.version == UInt32(try vector["expect"]["VERS"].integer))
      #expect(bag.secondStep == nil)
      for (number, wrap) in try vector["expect"]["WRAP"].members {
        let keyClass = KeyClass(rawValue: try #require(UInt32(number)))
        #expect(bag.classKey(keyClass)?.wrap?.rawValue == UInt32(try wrap.integer))
      }
      try bag.validate()
    }
  }

  @Test("synthetic_backup: a keybag with two steps is read, and creating it from its fields gives the same bytes")
  func syntheticBag() throws {
    let bytes = try TestVectors.section("synthetic_backup")["keybag_hex"].bytes
    let bag = try Keybag(parsing: bytes)
    #expect(bag.secondStep?.iterations == 1000)
    let rebuilt = try Keybag(
      version: #require(bag.version), type: #require(bag.type), uuid: #require(bag.uuid),
      hmacKey: #require(bag.hmacKey), wrap: #require(bag.wrap), salt: #require(bag.salt),
      iterations: #require(bag.iterations), secondStep: bag.secondStep,
      classKeys: bag.classKeys.map { classKey in
        Keybag.ClassKey(
          uuid: try #require(classKey.uuid), keyClass: try #require(classKey.keyClass),
          wrap: try #require(classKey.wrap),
          keyType: try #require(classKey.keyType), wrappedKey: try #require(classKey.wrappedKey),
          publicKey: classKey.publicKey)
      })
    #expect(rebuilt.serialized() == bytes)
  }
}
