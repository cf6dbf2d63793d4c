import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainCrypto

@Suite("Items of iOS 4")
struct LegacyItemTests {
  private let secret = Array("hunter2".utf8)

  /// The offsets of the parts of a blob. The ciphertext is one block, which is the secret and its padding.
  private enum BlobOffset {
    static let version = 0
    static let keyClass = 4
    static let wrappedKey = 8
    static let ciphertext = 48
    static let end = 64
  }

  private func makeBlob(_ keys: ClassKeys) throws -> [UInt8] {
    let version: [UInt8] = [0, 0, 0, 0]
    let key = try Secret(count: 32, from: SeededRandomSource(seed: "legacy"))
    let keyClassAndWrappedKey = try keys.wrapFileKey(key, keyClass: .whenUnlocked)
    return version + keyClassAndWrappedKey + (try FileCipher.encrypt(secret, key: key))
  }

  @Test("The secret of an item is decrypted")
  func opens() throws {
    let keys = try SyntheticBackup().unlock(withDeviceKey: false)
    let bytes = try makeBlob(keys)
    #expect(bytes.count == BlobOffset.end)
    let parsed = try LegacyItemBlob(parsing: bytes)
    #expect(parsed.keyClass == .whenUnlocked)
    let opened = try keys.openSecret(of: parsed).revealed
    #expect(opened == secret)
  }

  @Test("An item with a damaged key or padding, or without a class key, is not decrypted")
  func faults() throws {
    let keys = try SyntheticBackup().unlock(withDeviceKey: false)
    let bytes = try makeBlob(keys)
    func fault(_ changed: [UInt8]) throws -> ItemFault? {
      let parsed = try LegacyItemBlob(parsing: changed)
      do throws(ItemCryptoError) {
        _ = try keys.openSecret(of: parsed)
        return nil
      } catch {
        return error.fault
      }
    }
    #expect(try fault(bytes.flipping(bit: 8 * BlobOffset.wrappedKey)) == .keyUnwrapFailed)
    // The last bit of the class's first byte turns class 6 into 134, which the keybag does not have.
    #expect(try fault(bytes.flipping(bit: 8 * BlobOffset.keyClass + 7)) == .noClassKey)
    let lastByte = BlobOffset.end - 1
    guard case .malformed? = try fault(bytes.flipping(bit: 8 * lastByte)) else {
      Issue.record("a changed padding was accepted")
      return
    }
  }

  @Test("An item with a wrong length or version is rejected")
  func parsing() throws {
    let keys = try SyntheticBackup().unlock(withDeviceKey: false)
    let bytes = try makeBlob(keys)
    func errorCode(_ bytes: [UInt8]) -> FormatError.Code? {
      do throws(FormatError) {
        _ = try LegacyItemBlob(parsing: bytes)
        return nil
      } catch {
        return error.code
      }
    }
    #expect(errorCode(bytes) == nil)
    #expect(errorCode(Array(bytes.dropLast())) == .malformed)
    for count in 0...BlobOffset.ciphertext { #expect(errorCode(Array(bytes.prefix(count))) == .truncated) }
    for version in [1, 2, 3, 6, 7] as [UInt8] {
      #expect(errorCode([version] + bytes.dropFirst()) == .unsupportedVersion)
    }
    let topBitOfVersion: [UInt8] = [0, 0, 0, 0x80]
    #expect(errorCode(topBitOfVersion + bytes.dropFirst(4)) == .unsupportedVersion)
  }
}

@Suite("Keybags of any version")
struct KeybagVarietyTests {
  @Test(
    "A keybag of any version is unlocked, with its classes in any order and with unknown records",
    arguments: [2, 3, 4, 5, 9])
  func versions(version: UInt32) throws {
    let backup = try SyntheticBackup()
    var keybag = backup.keybag
    keybag.version = version
    for seed in 0..<3 {
      var random = SeededRandom(seed: UInt64(seed))
      keybag.classKeys.shuffle(using: &random)
      // The first unknown record is in the header, and the second one in the last class.
      let unknownRecord: [UInt8] = Array("XYZW".utf8) + [0, 0, 0, 3, 1, 2, 3]
      let bytes = unknownRecord + keybag.serialized() + unknownRecord
      let parsed = try Keybag(parsing: bytes)
      #expect(parsed.serialized() == bytes)
      let noKey: DeviceKey? = nil
      let keys = try parsed.unlock(password: Secret(utf8: backup.password), deviceKey: noKey)
      #expect(keys.unwrappedCount == 11)
      #expect(keys[6] == .available)
      #expect(keys[9] == .deviceBound)
    }
  }

  @Test("A class with WRAP 3 has no usable key without the device key")
  func passwordAndDeviceWrap() throws {
    let backup = try SyntheticBackup()
    let keys = try backup.unlock(withDeviceKey: false)
    for classNumber in BackupClassNumbers.deviceWrapped {
      #expect(keys[classNumber] == .deviceBound)
      #expect(!keys.hasKey(of: KeyClass(rawValue: classNumber)))
      #expect(keys.revealed(classNumber) == nil)
    }
  }

  @Test("The empty password unlocks a keybag without a password, but every keychain class stays device-bound")
  func emptyPassword() throws {
    for entry in try TestVectors.section("unencrypted_backup_keybag").elements {
      let keybag = try Keybag(parsing: entry["keybag"].bytes)
      let noKey: DeviceKey? = nil
      let keys = try keybag.unlock(password: Secret.empty, deviceKey: noKey)
      #expect(keys.damageReport == nil)
      for classNumber in BackupClassNumbers.files { #expect(keys[classNumber] == .available) }
      for classNumber in BackupClassNumbers.deviceWrappedWithoutPassword {
        #expect(keys[classNumber] == .deviceBound)
      }
    }
  }
}
