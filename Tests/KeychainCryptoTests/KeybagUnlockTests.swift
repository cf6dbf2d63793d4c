import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainCrypto

@Suite("Unlocking keybags of backups")
struct KeybagUnlockTests {
  @Test("Password and device key unwrap all eleven class keys of the synthetic backup")
  func both() throws {
    let backup = try SyntheticBackup()
    let keys = try backup.unlock(withDeviceKey: true)
    for (number, expected) in try backup.vectors["class_keys"].members {
      let key = keys.revealed(try #require(UInt32(number)))
      #expect(try key == expected.bytes, "class \(number)")
    }
    for number: UInt32 in [1, 2, 3, 4, 6, 7, 8] { #expect(keys[number] == .available) }
    for number: UInt32 in [5, 9, 10, 11] { #expect(keys[number] == .availableThroughDevice) }
    for number: UInt32 in [0, 12, 13, 22] { #expect(keys[number] == .absent) }
    let counts = [keys.wrappedCount, keys.unwrappedCount]
    #expect(counts == [11, 11])
    let texts = [keys.summary, keys.damageReport]
    #expect(texts == ["11 of 11 class keys can be unwrapped", nil])
  }

  @Test("Without the device key, the this-device-only classes are device-bound and have no key")
  func passwordOnly() throws {
    let backup = try SyntheticBackup()
    let keys = try backup.unlock(withDeviceKey: false)
    for number: UInt32 in [5, 9, 10, 11] {
      #expect(keys[number] == .deviceBound)
      #expect(keys.revealed(number) == nil)
    }
    for number: UInt32 in [1, 2, 3, 4, 6, 7, 8] { #expect(keys[number] == .available) }
  }

  @Test("Without a password, nothing is derived or unwrapped, with a device key or without")
  func noPassword() throws {
    let backup = try SyntheticBackup()
    var didWork = false
    let keys = try backup.keybag.unlock(password: nil, deviceKey: backup.deviceKey()) { _, _ in
      didWork = true
      return true
    }
    for number: UInt32 in 1...11 { #expect(keys[number] == .locked) }
    #expect(!didWork)
    let neither = try backup.keybag.unlock(password: nil, deviceKey: nil)
    for number: UInt32 in 1...11 { #expect(neither[number] == .locked) }
  }

  @Test("The passcode key unlocks the keybag again without the password")
  func cachedKey() throws {
    let backup = try SyntheticBackup()
    let key = try backup.keybag.passcodeKey(password: Secret(utf8: backup.password))
    #expect(try key.revealed == backup.vectors["passcode_key_hex"].bytes)
    let inner = try PBKDF2.sha256(
      password: Secret(utf8: backup.password), salt: #require(backup.keybag.dpsl),
      rounds: Int(#require(backup.keybag.dpic)), count: 32)
    #expect(try inner.revealed == backup.vectors["dpsl_key_hex"].bytes)
    let keys = try backup.keybag.unlock(passcodeKey: consume key, deviceKey: nil)
    #expect(keys[6] == .available)
  }

  @Test("A wrong password unlocks nothing and is reported")
  func wrongPassword() throws {
    let backup = try SyntheticBackup()
    for password in ["", "correct horse\n", "Correct horse", "correct horse battery"] {
      let error = #expect(throws: DataProtectionError.self) {
        _ = try backup.keybag.unlock(password: Secret(utf8: password), deviceKey: backup.deviceKey())
      }
      #expect(error?.code == .wrongPassword)
      #expect(error?.category == .wrongPassword)
      #expect(error?.summary == "the password is wrong")
      #expect(error?.reason == "it unlocks none of the 11 class keys")
      #expect(error?.advice == "the password set when the backup was made; it is not the device's passcode")
    }
  }

  @Test("Real keybags without a password are unlocked with the empty one, and every keychain class stays device-bound")
  func unencrypted() throws {
    for entry in try TestVectors.list("unencrypted_backup_keybag") {
      let keybag = try Keybag(parsing: entry["keybag"].bytes)
      let passcodeKey = try keybag.passcodeKey(password: .empty)
      #expect(try passcodeKey.revealed == entry["expect_passcode_key"].bytes)
      for (number, expected) in try entry["expect"]["unwrapped"].members {
        let keyClass = KeyClass(rawValue: try #require(UInt32(number)))
        let record = try #require(keybag.classKey(keyClass))
        let unwrapped = try KeyWrap.unwrap(#require(record.wrappedKey), with: passcodeKey)?.revealed
        #expect(try unwrapped == expected.bytes, "class \(number)")
      }
      let keys = try keybag.unlock(password: .empty, deviceKey: nil)
      for number: UInt32 in 1...4 {
        let key = keys.revealed(number)
        #expect(try key == entry["expect"]["unwrapped"]["\(number)"].bytes)
      }
      for number: UInt32 in 5...11 { #expect(keys[number] == .deviceBound) }
      let counts = [keys.wrappedCount, keys.unwrappedCount]
      #expect(counts == [11, 11])
      let error = #expect(throws: DataProtectionError.self) {
        _ = try keybag.unlock(password: Secret(utf8: "x"), deviceKey: nil)
      }
      #expect(error?.code == .wrongPassword)
    }
  }

  @Test("A flipped bit of a wrapped class key damages only that class, which is reported")
  func flippedClassKey() throws {
    let backup = try SyntheticBackup()
    for index in backup.keybag.classKeys.indices {
      let wrapped = try #require(backup.keybag.classKeys[index].wrappedKey)
      let keyClass = try #require(backup.keybag.classKeys[index].keyClass)
      for bit in stride(from: 0, to: wrapped.count * 8, by: 13) {
        var keybag = backup.keybag
        keybag.classKeys[index].wrappedKey = wrapped.flipping(bit: bit)
        let keys = try keybag.unlock(
          passcodeKey: Secret(backup.vectors["passcode_key_hex"]), deviceKey: backup.deviceKey())
        let damaged = keys.classes.filter { keys.availability(of: $0) == .damaged }
        #expect(damaged == [keyClass])
        let report = keys.damageReport
        #expect(report == "10 of 11 class keys can be unwrapped, class \(keyClass.rawValue) cannot")
      }
    }
  }

  @Test("The order of the classes does not matter")
  func shuffled() throws {
    let backup = try SyntheticBackup()
    var keybag = backup.keybag
    keybag.classKeys.reverse()
    let keys = try keybag.unlock(password: Secret(utf8: backup.password), deviceKey: nil)
    let key = keys.revealed(6)
    #expect(try key == backup.vectors["class_keys"]["6"].bytes)
  }
}

@Suite("Unusual keybags")
struct KeybagFaultTests {
  private static let passcodeKey = [UInt8](repeating: 0x11, count: 32)
  private static let deviceKey = [UInt8](repeating: 0x22, count: 16)
  private static let classKey = [UInt8](repeating: 0x33, count: 32)

  /// Returns a keybag with a valid class 6 and the given class 7.
  private func bag(_ record: Keybag.ClassKey) throws -> Keybag {
    let valid = try Keybag.ClassKey(
      uuid: [UInt8](repeating: 6, count: 16), keyClass: .whenUnlocked, wrap: .password,
      wrappedKey: KeyWrap.wrap(Secret(copying: Self.classKey), with: Secret(copying: Self.passcodeKey)))
    var keybag = try Keybag(
      type: .backup, uuid: [UInt8](repeating: 1, count: 16), salt: [UInt8](repeating: 2, count: 20), iterations: 1,
      classKeys: [valid])
    keybag.classKeys.append(record)
    return keybag
  }

  private func record(
    _ keyClass: UInt32 = 7, wrap: UInt32, keyType: UInt32 = 0, wrappedKey: [UInt8], publicKey: [UInt8]? = nil
  ) -> Keybag.ClassKey {
    Keybag.ClassKey(
      uuid: [UInt8](repeating: 7, count: 16), keyClass: KeyClass(rawValue: keyClass),
      wrap: Keybag.WrapFlags(rawValue: wrap), keyType: Keybag.KeyType(rawValue: keyType), wrappedKey: wrappedKey,
      publicKey: publicKey)
  }

  private func unlock(_ keybag: Keybag, deviceKey: [UInt8]? = deviceKey) throws -> ClassKeys {
    try keybag.unlock(
      passcodeKey: Secret(copying: Self.passcodeKey),
      deviceKey: deviceKey.map { try DeviceKey(Secret(copying: $0)) })
  }

  private func passwordWrapped(_ key: [UInt8]) throws -> [UInt8] {
    try KeyWrap.wrap(Secret(copying: key), with: Secret(copying: Self.passcodeKey))
  }

  private func deviceWrapped(_ key: [UInt8]) throws -> [UInt8] {
    try DeviceKey(Secret(copying: Self.deviceKey)).wrap(Secret(copying: key)).revealed
  }

  @Test("WRAP 1, 2 and 3 are unwrapped in the order password, device")
  func validWraps() throws {
    let key = [UInt8](repeating: 0x44, count: 32)
    for (wrap, wrapped, availability) in [
      (UInt32(1), try deviceWrapped(key), ClassKeyAvailability.availableThroughDevice),
      (2, try passwordWrapped(key), .available),
      (3, try passwordWrapped(deviceWrapped(key)), .availableThroughDevice),
    ] {
      let keys = try unlock(bag(record(wrap: wrap, wrappedKey: wrapped)))
      #expect(keys[7] == availability)
      #expect(keys.revealed(7) == key)
      let without = try unlock(bag(record(wrap: wrap, wrappedKey: wrapped)), deviceKey: nil)
      #expect(without[7] == (wrap == 2 ? .available : .deviceBound))
    }
  }

  @Test(
    "An empty or unknown WRAP makes the class unusable", arguments: [UInt32(0), 4, 5, 6, 7, .max])
  func unknownWraps(wrap: UInt32) throws {
    let keys = try unlock(bag(record(wrap: wrap, wrappedKey: Self.classKey)))
    #expect(keys[7] == .damaged)
    #expect(keys[6] == .available)
    #expect(keys.revealed(7) == nil)
    let report = keys.damageReport
    #expect(report?.hasSuffix("class 7: its WRAP is \(wrap)") == true)
  }

  @Test(
    "A wrapped key whose length does not match its WRAP makes the class unusable",
    arguments: [(UInt32(1), 40), (1, 31), (1, 33), (2, 32), (2, 39), (2, 41), (2, 72), (3, 32), (3, 0)])
  func lengths(wrap: UInt32, count: Int) throws {
    let keys = try unlock(bag(record(wrap: wrap, wrappedKey: [UInt8](repeating: 0, count: count))))
    #expect(keys[7] == .damaged)
    #expect(keys[6] == .available)
    let report = keys.damageReport
    #expect(report?.hasSuffix("class 7: its WPKY has \(count) bytes, not \(wrap == 1 ? 32 : 40)") == true)
  }

  @Test("A Curve25519 class requires its own public key")
  func curve25519() throws {
    let vector = try TestVectors.section("curve25519_class_file_key")
    let wrapped = try passwordWrapped(vector["class_private"].bytes)
    let publicKey = try vector["class_public"].bytes
    let valid = try unlock(bag(record(wrap: 2, keyType: 1, wrappedKey: wrapped, publicKey: publicKey)))
    #expect(valid[7] == .available)
    let without = try unlock(bag(record(wrap: 2, keyType: 1, wrappedKey: wrapped)))
    #expect(without[7] == .damaged)
    let mismatched = try unlock(
      bag(record(wrap: 2, keyType: 1, wrappedKey: wrapped, publicKey: publicKey.flipping(bit: 9))))
    #expect(mismatched[7] == .damaged)
    let unknown = try unlock(bag(record(wrap: 2, keyType: 2, wrappedKey: wrapped, publicKey: publicKey)))
    #expect(unknown[7] == .damaged)
  }

  @Test("The public key of a Curve25519 class reveals another device's key")
  func curve25519ThroughDevice() throws {
    let vector = try TestVectors.section("curve25519_class_file_key")
    let wrapped = try passwordWrapped(deviceWrapped(vector["class_private"].bytes))
    let bag = try bag(record(wrap: 3, keyType: 1, wrappedKey: wrapped, publicKey: vector["class_public"].bytes))
    let same = try unlock(bag)
    #expect(same[7] == .availableThroughDevice)
    let other = try unlock(bag, deviceKey: [UInt8](repeating: 0x55, count: 16))
    #expect(other[7] == .deviceBound)
    #expect(other.revealed(7) == nil)
  }

  @Test("A duplicate class is not used")
  func twice() throws {
    let keys = try unlock(bag(record(6, wrap: 2, wrappedKey: passwordWrapped(Self.classKey))))
    #expect(keys[6] == .damaged)
    let report = keys.damageReport
    #expect(report?.hasSuffix("class 6: it occurs twice") == true)
  }

  @Test(
    "Class numbers are not masked: 0, 12, 15 and 22 are separate classes",
    arguments: [UInt32(0), 12, 15, 22])
  func numbers(number: UInt32) throws {
    let keys = try unlock(bag(record(number, wrap: 2, wrappedKey: passwordWrapped(Self.classKey))))
    #expect(keys[number] == .available)
    #expect(keys[6] == .available)
  }

  @Test("A keybag without a class that the password wraps is never unlocked")
  func noPasswordClass() throws {
    var keybag = try bag(record(wrap: 1, wrappedKey: Self.classKey))
    keybag.classKeys.removeFirst()
    let error = #expect(throws: DataProtectionError.self) {
      _ = try keybag.unlock(password: Secret(utf8: "x"), deviceKey: nil)
    }
    #expect(error?.code == .damagedKeybag)
    keybag.classKeys = []
    #expect(throws: DataProtectionError.self) { _ = try keybag.unlock(password: Secret(utf8: "x"), deviceKey: nil) }
    #expect(throws: DataProtectionError.self) { _ = try unlock(keybag) }
  }

  @Test("A keybag whose only password class has a wrong length is damaged, and the password is not reported as wrong")
  func nothingToTry() throws {
    var keybag = try bag(record(wrap: 2, wrappedKey: [1, 2, 3]))
    keybag.classKeys.removeFirst()
    let error = #expect(throws: DataProtectionError.self) { _ = try unlock(keybag) }
    #expect(error?.code == .damagedKeybag)
  }

  @Test("Missing header fields are reported before any work")
  func missingFields() throws {
    let valid = try bag(record(wrap: 2, wrappedKey: passwordWrapped(Self.classKey)))
    var noSalt = valid
    noSalt.salt = nil
    var noRounds = valid
    noRounds.iterations = nil
    for (keybag, reason) in [(noSalt, "it has no SALT"), (noRounds, "it has no ITER")] {
      let error = #expect(throws: DataProtectionError.self) {
        _ = try keybag.unlock(password: Secret(utf8: "x"), deviceKey: nil)
      }
      #expect(error?.code == .missingField)
      #expect(error?.reason == reason)
    }
    var noUUID = valid
    noUUID.uuid = nil
    #expect(throws: DataProtectionError.self) { _ = try unlock(noUUID) }
  }

  @Test("There are two rounds only if DPIC and DPSL exist and DPIC is above zero")
  func presence() throws {
    var keybag = try bag(record(wrap: 2, wrappedKey: passwordWrapped(Self.classKey)))
    #expect(try keybag.derivationParameters().sha256Step == nil)
    keybag.dpic = 5
    #expect(try keybag.derivationParameters().sha256Step == nil)
    keybag.dpsl = [1, 2, 3]
    #expect(try keybag.derivationParameters().sha256Step == .init(salt: [1, 2, 3], iterations: 5))
    keybag.dpic = 0
    #expect(try keybag.derivationParameters().sha256Step == nil)
  }

  @Test("A keybag that requires too many iterations is rejected before any work")
  func tooMuch() throws {
    var keybag = try SyntheticBackup().keybag
    keybag.dpic = .max
    var didWork = false
    let error = #expect(throws: DataProtectionError.self) {
      _ = try keybag.unlock(password: Secret(utf8: "x"), deviceKey: nil) { _, _ in
        didWork = true
        return true
      }
    }
    #expect(error?.code == .roundsOverLimit)
    #expect(error?.category == .refused)
    #expect(!didWork)
  }
}
