import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainCrypto

@Suite("Unlocking keybags of backups")
struct KeybagUnlockTests {
  @Test("Password and device key unwrap all eleven class keys of the synthetic backup")
  func passwordAndDeviceKey() throws {
    let backup = try SyntheticBackup()
    let keys = try backup.unlock(withDeviceKey: true)
    for (classNumber, expected) in try backup.vectors["class_keys"].members {
      let key = keys.revealed(try #require(UInt32(classNumber)))
      #expect(try key == expected.bytes, "class \(classNumber)")
    }
    for classNumber in BackupClassNumbers.passwordWrapped { #expect(keys[classNumber] == .available) }
    for classNumber in BackupClassNumbers.deviceWrapped { #expect(keys[classNumber] == .availableThroughDevice) }
    // 22 is class 6 with the key generation 1, which no backup has.
    for classNumber: UInt32 in [0, 12, 13, 22] { #expect(keys[classNumber] == .absent) }
    #expect(keys.wrappedCount == 11)
    #expect(keys.unwrappedCount == 11)
    #expect(keys.summary == "11 of 11 class keys can be unwrapped")
    #expect(keys.damageReport == nil)
  }

  @Test("Without the device key, the this-device-only classes are device-bound and have no key")
  func passwordOnly() throws {
    let backup = try SyntheticBackup()
    let keys = try backup.unlock(withDeviceKey: false)
    for classNumber in BackupClassNumbers.deviceWrapped {
      #expect(keys[classNumber] == .deviceBound)
      #expect(keys.revealed(classNumber) == nil)
    }
    for classNumber in BackupClassNumbers.passwordWrapped { #expect(keys[classNumber] == .available) }
  }

  @Test("Without a password, nothing is derived or unwrapped, with a device key or without")
  func noPassword() throws {
    let backup = try SyntheticBackup()
    var didWork = false
    let keysWithDeviceKey = try backup.keybag.unlock(password: nil, deviceKey: backup.deviceKey()) { _, _ in
      didWork = true
      return true
    }
    #expect(!didWork)
    let keysWithoutDeviceKey = try backup.keybag.unlock(password: nil, deviceKey: nil)
    for classNumber in BackupClassNumbers.all {
      #expect(keysWithDeviceKey[classNumber] == .locked)
      #expect(keysWithoutDeviceKey[classNumber] == .locked)
    }
  }

  @Test("The passcode key unlocks the keybag again without the password")
  func cachedKey() throws {
    let backup = try SyntheticBackup()
    let passcodeKey = try backup.keybag.passcodeKey(password: Secret(utf8: backup.password))
    #expect(try passcodeKey.revealed == backup.vectors["passcode_key_hex"].bytes)
    let keys = try backup.keybag.unlock(passcodeKey: consume passcodeKey, deviceKey: nil)
    #expect(keys[6] == .available)
  }

  @Test("The SHA-256 step of the derivation gives the result in the vectors")
  func sha256Step() throws {
    let backup = try SyntheticBackup()
    let result = try PBKDF2.sha256(
      password: Secret(utf8: backup.password), salt: #require(backup.keybag.dpsl),
      iterations: Int(#require(backup.keybag.dpic)), count: 32)
    #expect(try result.revealed == backup.vectors["dpsl_key_hex"].bytes)
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

  @Test("The empty password unlocks real keybags without a password, but every keychain class stays device-bound")
  func unencrypted() throws {
    for entry in try TestVectors.list("unencrypted_backup_keybag") {
      let keybag = try Keybag(parsing: entry["keybag"].bytes)
      let passcodeKey = try keybag.passcodeKey(password: .empty)
      #expect(try passcodeKey.revealed == entry["expect_passcode_key"].bytes)
      for (classNumber, expected) in try entry["expect"]["unwrapped"].members {
        let keyClass = KeyClass(rawValue: try #require(UInt32(classNumber)))
        let record = try #require(keybag.classKey(keyClass))
        let unwrapped = try KeyWrap.unwrap(#require(record.wrappedKey), with: passcodeKey)?.revealed
        #expect(try unwrapped == expected.bytes, "class \(classNumber)")
      }
      let keys = try keybag.unlock(password: .empty, deviceKey: nil)
      for classNumber in BackupClassNumbers.files {
        #expect(try keys.revealed(classNumber) == entry["expect"]["unwrapped"]["\(classNumber)"].bytes)
      }
      for classNumber in BackupClassNumbers.deviceWrappedWithoutPassword {
        #expect(keys[classNumber] == .deviceBound)
      }
      #expect(keys.wrappedCount == 11)
      #expect(keys.unwrappedCount == 11)
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
        let damagedClasses = keys.classes.filter { keys.availability(of: $0) == .damaged }
        #expect(damagedClasses == [keyClass])
        #expect(keys.damageReport == "10 of 11 class keys can be unwrapped, class \(keyClass.rawValue) cannot")
      }
    }
  }

  @Test("The order of the classes does not matter")
  func reversedClasses() throws {
    let backup = try SyntheticBackup()
    var keybag = backup.keybag
    keybag.classKeys.reverse()
    let keys = try keybag.unlock(password: Secret(utf8: backup.password), deviceKey: nil)
    #expect(try keys.revealed(6) == backup.vectors["class_keys"]["6"].bytes)
  }
}

@Suite("Unusual keybags")
struct KeybagFaultTests {
  private static let passcodeKey = [UInt8](repeating: 0x11, count: 32)
  private static let deviceKey = [UInt8](repeating: 0x22, count: 16)
  private static let classKey = [UInt8](repeating: 0x33, count: 32)

  /// Returns a keybag with a valid class 6, and with a second class that has the given properties.
  private func keybag(
    withClass classNumber: UInt32 = 7, wrap: Keybag.WrapFlags, keyType: Keybag.KeyType = .symmetric,
    wrappedKey: [UInt8], publicKey: [UInt8]? = nil
  ) throws -> Keybag {
    let validRecord = try Keybag.ClassKey(
      uuid: [UInt8](repeating: 6, count: 16), keyClass: .whenUnlocked, wrap: .password,
      wrappedKey: KeyWrap.wrap(Secret(copying: Self.classKey), with: Secret(copying: Self.passcodeKey)))
    var keybag = try Keybag(
      type: .backup, uuid: [UInt8](repeating: 1, count: 16), salt: [UInt8](repeating: 2, count: 20), iterations: 1,
      classKeys: [validRecord])
    keybag.classKeys.append(
      Keybag.ClassKey(
        uuid: [UInt8](repeating: 7, count: 16), keyClass: KeyClass(rawValue: classNumber), wrap: wrap,
        keyType: keyType, wrappedKey: wrappedKey, publicKey: publicKey))
    return keybag
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

  @Test("For WRAP 1, 2 and 3, the password's wrap is removed before the device's wrap")
  func validWraps() throws {
    let key = [UInt8](repeating: 0x44, count: 32)
    let cases: [(wrap: Keybag.WrapFlags, wrappedKey: [UInt8], availability: ClassKeyAvailability)] = [
      (.device, try deviceWrapped(key), .availableThroughDevice),
      (.password, try passwordWrapped(key), .available),
      ([.device, .password], try passwordWrapped(deviceWrapped(key)), .availableThroughDevice),
    ]
    for (wrap, wrappedKey, availability) in cases {
      let keybag = try keybag(wrap: wrap, wrappedKey: wrappedKey)
      let keys = try unlock(keybag)
      #expect(keys[7] == availability)
      #expect(keys.revealed(7) == key)
      let keysWithoutDeviceKey = try unlock(keybag, deviceKey: nil)
      #expect(keysWithoutDeviceKey[7] == (wrap == .password ? .available : .deviceBound))
    }
  }

  @Test(
    "An empty or unknown WRAP makes the class unusable", arguments: [UInt32(0), 4, 5, 6, 7, .max])
  func unknownWraps(wrap: UInt32) throws {
    let keys = try unlock(keybag(wrap: Keybag.WrapFlags(rawValue: wrap), wrappedKey: Self.classKey))
    #expect(keys[7] == .damaged)
    #expect(keys[6] == .available)
    #expect(keys.revealed(7) == nil)
    #expect(keys.damageReport?.hasSuffix("class 7: its WRAP is \(wrap)") == true)
  }

  @Test("A class without WRAP is unusable")
  func missingWrap() throws {
    var keybag = try keybag(wrap: .password, wrappedKey: passwordWrapped(Self.classKey))
    keybag.classKeys[1].wrap = nil
    let keys = try unlock(keybag)
    #expect(keys[7] == .damaged)
    #expect(keys[6] == .available)
    #expect(keys.revealed(7) == nil)
    #expect(keys.damageReport?.hasSuffix("class 7: it has no WRAP") == true)
  }

  @Test(
    "A wrapped key whose length does not match its WRAP makes the class unusable",
    arguments: [(UInt32(1), 40), (1, 31), (1, 33), (2, 32), (2, 39), (2, 41), (2, 72), (3, 32), (3, 0)])
  func lengths(wrap: UInt32, count: Int) throws {
    let keys = try unlock(
      keybag(wrap: Keybag.WrapFlags(rawValue: wrap), wrappedKey: [UInt8](repeating: 0, count: count)))
    #expect(keys[7] == .damaged)
    #expect(keys[6] == .available)
    let expectedCount = wrap == 1 ? 32 : 40
    #expect(keys.damageReport?.hasSuffix("class 7: its WPKY has \(count) bytes, not \(expectedCount)") == true)
  }

  @Test("A Curve25519 class requires its own public key")
  func curve25519() throws {
    let vector = try TestVectors.section("curve25519_class_file_key")
    let wrapped = try passwordWrapped(vector["class_private"].bytes)
    let publicKey = try vector["class_public"].bytes
    func availability(_ keyType: Keybag.KeyType = .curve25519, publicKey: [UInt8]?) throws -> ClassKeyAvailability {
      try unlock(keybag(wrap: .password, keyType: keyType, wrappedKey: wrapped, publicKey: publicKey))[7]
    }
    #expect(try availability(publicKey: publicKey) == .available)
    #expect(try availability(publicKey: nil) == .damaged)
    #expect(try availability(publicKey: publicKey.flipping(bit: 9)) == .damaged)
    let unknownType = Keybag.KeyType(rawValue: 2)
    #expect(try availability(unknownType, publicKey: publicKey) == .damaged)
  }

  @Test("With the public key of a Curve25519 class, another device's key is detected")
  func curve25519ThroughDevice() throws {
    let vector = try TestVectors.section("curve25519_class_file_key")
    let wrapped = try passwordWrapped(deviceWrapped(vector["class_private"].bytes))
    let keybag = try keybag(
      wrap: [.device, .password], keyType: .curve25519, wrappedKey: wrapped, publicKey: vector["class_public"].bytes)
    let keys = try unlock(keybag)
    #expect(keys[7] == .availableThroughDevice)
    let keysWithOtherDeviceKey = try unlock(keybag, deviceKey: [UInt8](repeating: 0x55, count: 16))
    #expect(keysWithOtherDeviceKey[7] == .deviceBound)
    #expect(keysWithOtherDeviceKey.revealed(7) == nil)
  }

  @Test("A duplicate class is not used")
  func duplicateClass() throws {
    let keys = try unlock(keybag(withClass: 6, wrap: .password, wrappedKey: passwordWrapped(Self.classKey)))
    #expect(keys[6] == .damaged)
    #expect(keys.damageReport?.hasSuffix("class 6: it occurs twice") == true)
  }

  @Test(
    "Class numbers are not masked: 0, 12, 15 and 22 are separate classes",
    arguments: [UInt32(0), 12, 15, 22])
  func unusualClasses(classNumber: UInt32) throws {
    let keys = try unlock(
      keybag(withClass: classNumber, wrap: .password, wrappedKey: passwordWrapped(Self.classKey)))
    #expect(keys[classNumber] == .available)
    #expect(keys[6] == .available)
  }

  @Test("A keybag without a password-wrapped class is never unlocked")
  func noPasswordClass() throws {
    var keybag = try keybag(wrap: .device, wrappedKey: Self.classKey)
    keybag.classKeys.removeFirst()
    let error = #expect(throws: DataProtectionError.self) {
      _ = try keybag.unlock(password: Secret(utf8: "x"), deviceKey: nil)
    }
    #expect(error?.code == .damagedKeybag)
  }

  @Test("A keybag without classes is never unlocked")
  func noClasses() throws {
    var keybag = try keybag(wrap: .password, wrappedKey: passwordWrapped(Self.classKey))
    keybag.classKeys = []
    #expect(throws: DataProtectionError.self) { _ = try keybag.unlock(password: Secret(utf8: "x"), deviceKey: nil) }
    #expect(throws: DataProtectionError.self) { _ = try unlock(keybag) }
  }

  @Test("A keybag whose only wrapped key has a wrong length is damaged, and the password is not reported as wrong")
  func noUsableClass() throws {
    var keybag = try keybag(wrap: .password, wrappedKey: [1, 2, 3])
    keybag.classKeys.removeFirst()
    let error = #expect(throws: DataProtectionError.self) { _ = try unlock(keybag) }
    #expect(error?.code == .damagedKeybag)
  }

  @Test("Missing header fields are reported before any work")
  func missingFields() throws {
    let validKeybag = try keybag(wrap: .password, wrappedKey: passwordWrapped(Self.classKey))
    var keybagWithoutSalt = validKeybag
    keybagWithoutSalt.salt = nil
    var keybagWithoutIterations = validKeybag
    keybagWithoutIterations.iterations = nil
    for (keybag, reason) in [
      (keybagWithoutSalt, "it has no SALT"), (keybagWithoutIterations, "it has no ITER"),
    ] {
      let error = #expect(throws: DataProtectionError.self) {
        _ = try keybag.unlock(password: Secret(utf8: "x"), deviceKey: nil)
      }
      #expect(error?.code == .missingField)
      #expect(error?.reason == reason)
    }
    var keybagWithoutUUID = validKeybag
    keybagWithoutUUID.uuid = nil
    #expect(throws: DataProtectionError.self) { _ = try unlock(keybagWithoutUUID) }
  }

  @Test("The derivation has a step with SHA-256 only if DPIC and DPSL exist and DPIC is above zero")
  func presenceOfSHA256Step() throws {
    var keybag = try keybag(wrap: .password, wrappedKey: passwordWrapped(Self.classKey))
    #expect(try keybag.derivationParameters().sha256Step == nil)
    keybag.dpic = 5
    #expect(try keybag.derivationParameters().sha256Step == nil)
    keybag.dpsl = [1, 2, 3]
    #expect(try keybag.derivationParameters().sha256Step == .init(salt: [1, 2, 3], iterations: 5))
    keybag.dpic = 0
    #expect(try keybag.derivationParameters().sha256Step == nil)
  }

  @Test("A keybag that requires too many iterations is rejected before any work")
  func tooManyIterations() throws {
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
