import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainCrypto

@Suite("Decrypting items of a backup")
struct ItemDecryptionTests {
  private func kind(_ vector: TestVectors) throws -> ItemKind {
    try #require(ItemKind(rawValue: vector["table"].string))
  }

  @Test("Every item of the synthetic backup is decrypted with the password and the device key")
  func synthetic() throws {
    let backup = try SyntheticBackup()
    let keys = try backup.unlock(withDeviceKey: true)
    let items = try backup.vectors["items"].elements
    #expect(items.count == 5)
    // One of the items is encrypted with the fixed IV, as in a device's database.
    for vector in items {
      let blob = try ItemBlob(parsing: vector["v_Data_hex"].bytes)
      #expect(try blob.hasStaticIV == vector["static_iv"].boolean)
      let key = try keys.unwrap(blob.wrappedKey, keyClass: blob.keyClass)
      #expect(try key.revealed == vector["item_key_hex"].bytes)
      let plaintext = try keys.open(blob)
      #expect(try plaintext.revealed == vector["plaintext_der_hex"].bytes)
      let item = try keys.open(blob: vector["v_Data_hex"].bytes, kind: kind(vector))
      #expect(try item.derDictionary().revealed == vector["plaintext_der_hex"].bytes)
      #expect(try item.digest() == #require(item[.digest]?.dataValue))
    }
  }

  @Test("Without the device key, every item except the this-device-only item is decrypted")
  func deviceBound() throws {
    let backup = try SyntheticBackup()
    let keys = try backup.unlock(withDeviceKey: false)
    for item in try backup.vectors["items"].elements {
      let blob = try blob(of: item)
      let isThisDeviceOnly = try item["class_"].integer == 9
      do throws(ItemCryptoError) {
        _ = try keys.open(blob)
        #expect(!isThisDeviceOnly)
      } catch {
        #expect(isThisDeviceOnly)
        #expect(error.fault == .deviceBound)
        #expect(error.reason == "the key of class 9 is wrapped with the device key")
      }
    }
  }

  /// Returns the encrypted item of a vector.
  private func blob(of item: TestVectors) throws -> ItemBlob { try ItemBlob(parsing: item["v_Data_hex"].bytes) }

  @Test("With another device's key, the key of a this-device-only item cannot be unwrapped")
  func otherDevice() throws {
    let backup = try SyntheticBackup()
    let otherDeviceKey = try DeviceKey(Secret(copying: [UInt8](repeating: 1, count: 16)))
    let keys = try backup.keybag.unlock(password: Secret(utf8: backup.password), deviceKey: consume otherDeviceKey)
    let thisDeviceOnlyItem = try backup.vectors["items"].elements[3]
    let blob = try blob(of: thisDeviceOnlyItem)
    let error = #expect(throws: ItemCryptoError.self) { _ = try keys.open(blob) }
    #expect(error?.fault == .keyUnwrapFailed)
    // The device's wrapping has no checksum, so a wrong device key gives a wrong class key, and no error.
    #expect(keys[9] == .availableThroughDevice)
  }

  @Test("An item of a Curve25519 class is decrypted with the intermediate values of the vectors")
  func asymmetric() throws {
    let vector = try TestVectors.section("synthetic_backup")["asym"]
    let privateKey = try Secret(vector["class_private_hex"])
    let publicKey = try vector["class_public_hex"].bytes
    let ephemeral = try vector["ephemeral_public_hex"].bytes
    #expect(try X25519.publicKey(of: privateKey) == publicKey)
    let sharedSecret = try X25519.sharedSecret(privateKey, with: ephemeral)
    #expect(try sharedSecret.revealed == vector["shared_hex"].bytes)
    let wrappingKey = try Curve25519Wrap.wrappingKey(
      sharedSecret, ephemeralPublicKey: ephemeral, publicKey: publicKey)
    #expect(try wrappingKey.revealed == vector["kek_hex"].bytes)

    let entry = ClassKeys.Entry(availability: .available, key: .init(privateKey.copy()), publicKey: publicKey)
    let keys = ClassKeys(keybagUUID: [], entries: [.whenUnlocked: entry], wrappedCount: 1, unwrappedCount: 1)
    let blob = try ItemBlob(parsing: vector["v_Data_hex"].bytes)
    #expect(blob.wrappedKey.count == 72)
    #expect(try keys.unwrap(blob.wrappedKey, keyClass: .whenUnlocked).revealed == vector["item_key_hex"].bytes)
    #expect(try keys.open(blob).revealed == vector["plaintext_der_hex"].bytes)

    let encryptedAgain = try keys.seal(keys.open(blob), keyClass: .whenUnlocked, as: .backup)
    #expect(encryptedAgain.wrappedKey.count == 72)
    #expect(try keys.open(encryptedAgain).revealed == vector["plaintext_der_hex"].bytes)
  }
}

@Suite("Unwrapping the key of a real file of class 2")
struct Curve25519FileKeyTests {
  /// The size of the ephemeral public key, with which a wrapped key starts.
  private static let publicKeySize = 32

  private let vector: TestVectors
  private let wrappedKey: [UInt8]
  private let publicKey: [UInt8]

  init() throws {
    vector = try TestVectors.section("curve25519_class_file_key")
    let attribute = try vector["cprotect_xattr"].bytes
    let start = try vector["wrapped_key_offset"].integer
    wrappedKey = Array(attribute[start..<start + (try vector["wrapped_key_length"].integer)])
    publicKey = try vector["class_public"].bytes
  }

  private func unwrap(_ wrappedKey: [UInt8]) throws -> [UInt8]? {
    try Curve25519Wrap.unwrap(wrappedKey, privateKey: Secret(vector["class_private"]), publicKey: publicKey)?.revealed
  }

  @Test("The shared secret and the wrapping key have the published values")
  func wrappingKey() throws {
    let ephemeralPublicKey = Array(wrappedKey.prefix(Self.publicKeySize))
    let sharedSecret = try X25519.sharedSecret(Secret(vector["class_private"]), with: ephemeralPublicKey)
    #expect(try sharedSecret.revealed == vector["expect_shared"].bytes)
    let wrappingKey = try Curve25519Wrap.wrappingKey(
      sharedSecret, ephemeralPublicKey: ephemeralPublicKey, publicKey: publicKey)
    #expect(try wrappingKey.revealed == vector["expect_kek"].bytes)
  }

  @Test("The file key has the published value")
  func unwrapped() throws {
    #expect(try unwrap(wrappedKey) == vector["expect_file_key"].bytes)
  }

  @Test("Every flipped bit of the wrapped key is detected, except the unused bit of the ephemeral public key")
  func flippedBits() throws {
    // X25519 ignores the top bit of the last byte (RFC 7748 §5).
    let unusedBit = Self.publicKeySize * 8 - 1
    for bit in 0..<wrappedKey.count * 8 where bit != unusedBit {
      #expect(try unwrap(wrappedKey.flipping(bit: bit)) == nil, "bit \(bit)")
    }
  }

  @Test("A wrapped key whose ephemeral public key is zero is rejected")
  func zeroPoint() throws {
    let zeroPoint = [UInt8](repeating: 0, count: Self.publicKeySize)
    #expect(try unwrap(zeroPoint + wrappedKey.dropFirst(Self.publicKeySize)) == nil)
  }
}

@Suite("Decrypting a real item of iOS 5")
struct ItemOfIOS5Tests {
  private let vector: TestVectors
  private let blob: ItemBlob

  init() throws {
    vector = try TestVectors.section("item_blob_v2")
    blob = try ItemBlob(parsing: vector["blob"].bytes)
  }

  /// The key that replaces the item's class key, which is not public.
  private static let substituteClassKey = [UInt8](repeating: 5, count: 32)

  /// Returns class keys with the substitute as the key of the item's class.
  private func substituteKeys() -> ClassKeys {
    let entry = ClassKeys.Entry(availability: .available, key: .init(Secret(copying: Self.substituteClassKey)))
    return ClassKeys(
      keybagUUID: [], entries: [.alwaysThisDeviceOnly: entry], wrappedCount: 0, unwrappedCount: 0)
  }

  /// Returns the item with its published item key, which the substitute wraps.
  private func rewrappedItem() throws -> ItemBlob {
    let wrappedKey = try KeyWrap.wrap(Secret(vector["bulk_key"]), with: Secret(copying: Self.substituteClassKey))
    return try ItemBlob(
      version: .v2, hasStaticIV: false, keyClass: blob.keyClass, wrappedKey: wrappedKey, ciphertext: blob.ciphertext,
      tag: blob.tag)
  }

  @Test("The item has version 2, and class keys decrypt it to the same bytes as its published item key")
  func decrypted() throws {
    #expect(blob.version == .v2)
    let plaintext = try #require(
      try ItemCipher().openWithEmptyNonce(
        Sealed(ciphertext: blob.ciphertext, tag: blob.tag), key: Secret(vector["bulk_key"])))
    let opened = try substituteKeys().open(rewrappedItem())
    #expect(opened.revealed == plaintext.revealed)
  }

  @Test("The property list of the item has the published attributes and secret")
  func attributes() throws {
    let item = try substituteKeys().open(rewrappedItem(), kind: .genericPassword)
    let expected = try vector["expect_attributes"]
    for code in ["svce", "labl", "acct", "agrp", "pdmn"] {
      let value = item[AttributeCode(rawValue: code)]
      let bytes = value?.stringValue.map { Array($0.utf8) } ?? value?.dataValue
      #expect(try bytes == Array(expected[code].string.utf8))
    }
    #expect(try item.secret?.revealed == Array(expected["v_Data_ascii"].string.utf8))
  }
}

@Suite("Encrypting and decrypting items")
final class ItemEncryptionTests {
  private let keys: ClassKeys
  /// A source that gives the same item keys in each run.
  private let random = SeededRandomSource(seed: "items")

  init() throws { keys = try SyntheticBackup().unlock(withDeviceKey: true) }

  private func item(_ protection: ProtectionClass = .whenUnlocked, secret: [UInt8] = [0, 0xFF, 0]) -> KeychainItem {
    var item = KeychainItem(
      kind: .genericPassword,
      attributes: [.account: .string("anna"), .service: .string("mail"), .accessGroup: .string("group")],
      secrets: [.valueData: SensitiveBytes(copying: secret)])
    item.protection = protection
    return item
  }

  @Test(
    "An item survives a round trip in both modes and in every class of a backup",
    arguments: ProtectionClass.allCases.filter { $0 != .whenPasscodeSetThisDeviceOnly },
    [ItemEncryptionMode.backup, .device])
  func roundTrip(protection: ProtectionClass, mode: ItemEncryptionMode) throws {
    for secret in [[], [7], [0, 0xFF, 0x80, 0], [UInt8](repeating: 9, count: 100_000)] {
      let item = item(protection, secret: secret)
      let blob = try keys.seal(item, as: mode, random: random)
      #expect(blob.version == .v3)
      #expect(blob.keyClass == protection.keyClass)
      #expect(blob.hasStaticIV == (mode == .device))
      let decrypted = try keys.open(blob: blob.serialized(), kind: .genericPassword)
      #expect(decrypted.attributes == item.attributes)
      #expect(decrypted.secret?.revealed == secret)
    }
  }

  @Test("`plaintextToSeal` returns the plaintext that `seal` encrypts, and `item(in:)` reads it as `open` does")
  func plaintextToSeal() throws {
    for protection in ProtectionClass.allCases where protection != .whenPasscodeSetThisDeviceOnly {
      let item = item(protection, secret: [0, 0xFF, 7])
      let blob = try keys.seal(item, as: .backup, random: random)
      let (plaintext, keyClass) = try keys.plaintextToSeal(of: item)
      #expect(keyClass == protection.keyClass)
      #expect(try keys.open(blob).revealed == plaintext.revealed)

      let decrypted = try keys.open(blob, kind: item.kind)
      let decoded = try ClassKeys.item(in: plaintext, kind: item.kind, keyClass: keyClass)
      #expect(decoded.attributes == decrypted.attributes)
      #expect(decoded.secret?.revealed == decrypted.secret?.revealed)
      #expect(throws: ItemCryptoError.self, "the class differs from the item's pdmn") {
        _ = try ClassKeys.item(in: plaintext, kind: item.kind, keyClass: KeyClass(rawValue: keyClass.rawValue + 1))
      }
    }
  }

  @Test("`plaintextToSeal` and `seal` have the same error for an item that cannot be encrypted")
  func refusedPlaintext() throws {
    var itemWithoutClass = item()
    itemWithoutClass.protection = nil
    var itemWithSecretAttribute = item()
    itemWithSecretAttribute.attributes[.valueData] = .data([1])
    for item in [itemWithoutClass, itemWithSecretAttribute] {
      let sealError = errorText { _ = try keys.seal(item, as: .backup) }
      #expect(sealError != nil)
      #expect(errorText { _ = try keys.plaintextToSeal(of: item) } == sealError)
    }

    let lockedKeys = try lockedKeys()
    #expect(errorText { _ = try lockedKeys.plaintextToSeal(of: item()) } == "locked")
    #expect(errorText { _ = try lockedKeys.seal(item(), as: .backup) } == "locked")
  }

  /// Returns the text of an item error's fault or of any other error, or `nil` if the closure throws no error.
  private func errorText(_ body: () throws -> Void) -> String? {
    do {
      try body()
      return nil
    } catch {
      return (error as? ItemCryptoError).map { "\($0.fault)" } ?? "\(error)"
    }
  }

  /// Returns the class keys of a locked device, without the key of `whenUnlocked`.
  private func lockedKeys() throws -> ClassKeys {
    try ClassKeys(importing: keys.exported()).dropping([.whenUnlocked])
  }

  @Test("Encrypting an item twice gives different wrapped keys and ciphertexts")
  func newItemKey() throws {
    // Without a seed, `seal` draws a new item key each time.
    let first = try keys.seal(item(), as: .backup)
    let second = try keys.seal(item(), as: .backup)
    #expect(first.ciphertext != second.ciphertext)
    #expect(first.wrappedKey != second.wrappedKey)
  }

  @Test(
    "An encrypted item with any flipped bit is rejected",
    arguments: [ItemEncryptionMode.backup, .device])
  func flippedBits(mode: ItemEncryptionMode) throws {
    let bytes = try keys.seal(item(), as: mode, random: random).serialized()
    for bit in 0..<bytes.count * 8 {
      #expect(throws: ItemCryptoError.self, "bit \(bit)") {
        _ = try keys.open(blob: bytes.flipping(bit: bit), kind: .genericPassword)
      }
    }
  }

  @Test("A changed class, wrapped key, ciphertext or tag causes the expected fault")
  func faults() throws {
    let blob = try keys.seal(item(), as: .backup, random: random)
    /// Returns the fault of decrypting the blob with some parts replaced.
    func fault(
      keyClass: KeyClass? = nil, wrappedKey: [UInt8]? = nil, ciphertext: [UInt8]? = nil, tag: [UInt8]? = nil
    ) throws -> ItemFault? {
      let changed = try ItemBlob(
        hasStaticIV: false, keyClass: keyClass ?? blob.keyClass, wrappedKey: wrappedKey ?? blob.wrappedKey,
        ciphertext: ciphertext ?? blob.ciphertext, tag: tag ?? blob.tag)
      return #expect(throws: ItemCryptoError.self) { _ = try keys.open(changed, kind: .genericPassword) }?.fault
    }
    #expect(try fault(keyClass: .whenPasscodeSetThisDeviceOnly) == .noClassKey)
    #expect(try fault(keyClass: .afterFirstUnlock) == .keyUnwrapFailed)
    #expect(try fault(wrappedKey: blob.wrappedKey.flipping(bit: 0)) == .keyUnwrapFailed)
    #expect(try fault(wrappedKey: [UInt8](repeating: 0, count: 72)) == .keyUnwrapFailed)
    #expect(try fault(ciphertext: blob.ciphertext.flipping(bit: 0)) == .tagMismatch)
    #expect(try fault(ciphertext: []) == .tagMismatch)
    #expect(try fault(tag: blob.tag.flipping(bit: 127)) == .tagMismatch)
  }

  @Test(
    "An error about an unsupported version contains its number",
    arguments: [UInt32(0), 1, 4, 5, 6, 7, 8, 9, 0x7FFF_FFFF])
  func versions(version: UInt32) throws {
    let bytes = try keys.seal(item(), as: .backup, random: random).serialized()
    let changed = withUnsafeBytes(of: version.littleEndian) { Array($0) } + bytes.dropFirst(4)
    let error = #expect(throws: ItemCryptoError.self) { _ = try keys.open(blob: changed, kind: .genericPassword) }
    #expect(error?.fault == .unsupportedVersion(version))
  }

  @Test("An item with a byte after its dictionary, or with a pdmn that differs from the blob's class, is malformed")
  func plaintextFaults() throws {
    let der = try item(.afterFirstUnlock).derDictionary().revealed
    let blobWithTrailingByte = try keys.seal(
      SensitiveBytes(copying: der + [0]), keyClass: .afterFirstUnlock, as: .backup, random: random)
    let blobOfOtherClass = try keys.seal(
      SensitiveBytes(copying: der), keyClass: .whenUnlocked, as: .backup, random: random)
    for blob in [blobWithTrailingByte, blobOfOtherClass] {
      let error = #expect(throws: ItemCryptoError.self) { _ = try keys.open(blob, kind: .genericPassword) }
      guard case .malformed? = error?.fault else {
        Issue.record("the error is \(String(describing: error))")
        continue
      }
      #expect(error?.category == .damaged)
    }
  }

  @Test("A key generation in the class number is ignored only in a device's own database")
  func generations() throws {
    let der = try item().derDictionary()
    let blob = try keys.seal(der, keyClass: .whenUnlocked, as: .backup, random: random)
    // Class 6 with key generation 1.
    let blobWithGeneration = try ItemBlob(
      hasStaticIV: false, keyClass: KeyClass(rawValue: 0x16), wrappedKey: blob.wrappedKey, ciphertext: blob.ciphertext,
      tag: blob.tag)
    let error = #expect(throws: ItemCryptoError.self) { _ = try keys.open(blobWithGeneration, kind: .genericPassword) }
    #expect(error?.fault == .noClassKey)
    let opened = try keys.open(blobWithGeneration, kind: .genericPassword, numbering: .withGenerations)
    #expect(opened.protection == .whenUnlocked)
  }

  @Test("The error for an item of a locked device is `locked`, when decrypting and encrypting")
  func locked() throws {
    let blob = try keys.seal(item(), as: .device, random: random)
    let lockedKeys = try lockedKeys()
    do throws(ItemCryptoError) {
      _ = try lockedKeys.open(blob)
      Issue.record("the locked item was decrypted")
    } catch {
      #expect(error.fault == .locked)
      #expect(error.category == .locked)
    }
    do throws(ItemCryptoError) {
      _ = try lockedKeys.seal(item(), as: .device, random: random)
      Issue.record("the item was encrypted with a locked key")
    } catch {
      #expect(error.fault == .locked)
    }
  }

  @Test("An item without a protection class is not encrypted")
  func noProtection() {
    var item = item()
    item.protection = nil
    #expect(throws: ItemCryptoError.self) { _ = try keys.seal(item, as: .backup, random: random) }
  }

  @Test("Several threads can decrypt items with the same keys")
  func concurrent() async throws {
    let blobs = try (0..<8).map { try keys.seal(item(secret: [UInt8($0)]), as: .backup, random: random) }
    let sharedKeys = keys
    try await withThrowingTaskGroup(of: [UInt8]?.self) { group in
      for index in 0..<200 {
        group.addTask {
          try sharedKeys.open(blobs[index % blobs.count], kind: .genericPassword).secret?.revealed
        }
      }
      for try await secret in group { #expect(secret?.count == 1) }
    }
  }
}

@Suite("Encrypting and decrypting items with an access-control list")
final class AccessControlTests {
  private let keys: ClassKeys
  /// Constraints that always allow reading the secret (`od`), and require the passcode (`cup`) for encryption (`oe`).
  private let constraints: PropertyDictionary = ["od": .boolean(true), "oe": .dictionary(["cup": .boolean(true)])]

  init() throws { keys = try SyntheticBackup().unlock(withDeviceKey: true) }

  private func item() -> KeychainItem {
    var item = KeychainItem(kind: .genericPassword, attributes: [.account: .string("anna")])
    item.secret = SensitiveBytes(copying: [1, 2, 3])
    item.protection = .whenUnlockedThisDeviceOnly
    return item
  }

  @Test("An item with constraints survives a round trip as version 6 with the fixed IV")
  func roundTrip() throws {
    let blob = try keys.sealAccessControlled(item(), constraints: constraints)
    #expect(blob.hasStaticIV)
    #expect(blob.serialized().prefix(4) == [6, 0, 0, 0x80])
    #expect(blob.protection == "aku")
    #expect(blob.wrappedKey.count == 40)
    let opened = try keys.open(AccessControlledItemBlob(parsing: blob.serialized()), kind: .genericPassword)
    #expect(opened.item.secret?.revealed == [1, 2, 3])
    #expect(opened.constraints["od"] == .boolean(true))
    #expect(opened.constraints["oe"]?.dictionaryValue?["cup"] == .boolean(true))
    #expect(opened.constraints.entries.count == 2)
  }

  @Test("An item with any flipped bit is rejected, also in its constraints")
  func flippedBits() throws {
    let bytes = try keys.sealAccessControlled(item(), constraints: constraints).serialized()
    for bit in 0..<bytes.count * 8 {
      #expect(throws: (any Error).self, "bit \(bit)") {
        _ = try keys.open(AccessControlledItemBlob(parsing: bytes.flipping(bit: bit)), kind: .genericPassword)
      }
    }
  }

  @Test("An item with the reference key of another key store has an unsupported version")
  func otherStore() throws {
    let blob = try keys.sealAccessControlled(item(), constraints: constraints)
    let otherStore = try AccessControlledItemBlob(
      hasStaticIV: true, protection: blob.protection, wrappedKey: blob.wrappedKey, referenceKey: [1, 2, 3],
      ciphertext: blob.ciphertext, tag: blob.tag)
    let error = #expect(throws: ItemCryptoError.self) { _ = try keys.open(otherStore, kind: .genericPassword) }
    #expect(error?.fault == .unsupportedVersion(6))
  }
}

@Suite("UUIDs from the primary keys of items")
struct ItemDigestTests {
  @Test("The primary key of an item gives the published digest and UUID")
  func published() throws {
    for entry in try TestVectors.list("primary_key_uuid") {
      let bytes = try entry["der"].bytes
      let kind = try #require(ItemKind(rawValue: entry["table"].string))
      let item = try bytes.withUnsafeBytes { try KeychainItem(derDictionary: $0, kind: kind) }
      #expect(try item.derivedUUIDText() == entry["uuid"].string)
      #expect(try item.primaryKeyDigest() == entry["sha1"].bytes)
    }
  }
}
