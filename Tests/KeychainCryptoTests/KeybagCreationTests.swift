import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainCrypto

@Suite("Creating keybags of backups")
struct BackupKeybagTests {
  private let random = SeededRandomSource(seed: "a backup")

  private func deviceKey() throws -> DeviceKey { try DeviceKey(Secret(copying: [UInt8](repeating: 9, count: 16))) }

  private func make(_ password: String?, rounds: Int = 1000) throws -> UnlockedKeybag {
    try BackupKeybag.make(
      password: password.map { Secret(utf8: $0) }, deviceKey: deviceKey(), rounds: rounds, random: random)
  }

  private func tags(_ records: [Keybag.Record]) -> [String] { records.map(\.tag.description) }

  @Test("A keybag with a password has the fields, order and wraps of a real keybag")
  func encrypted() throws {
    let keybag = try make("secret").keybag
    #expect(
      tags(keybag.header) == ["VERS", "TYPE", "UUID", "HMCK", "WRAP", "SALT", "ITER", "DPWT", "DPIC", "DPSL"])
    #expect(keybag.version == 4)
    #expect(keybag.type == .backup)
    #expect(keybag.hmacKey == [UInt8](repeating: 0, count: 40))
    #expect(keybag.wrap == [])
    // The SHA-1 step always has 10,000 iterations. Only the SHA-256 step (DPIC) has the requested number.
    #expect(keybag.iterations == 10_000)
    #expect(keybag.dpwt == 1)
    #expect(keybag.dpic == 1000)
    #expect(keybag.salt?.count == 20)
    #expect(keybag.dpsl?.count == 20)
    #expect(keybag.classKeys.map { $0.keyClass?.rawValue } == (1...11).reversed())
    for record in keybag.classKeys {
      #expect(tags(record.records) == ["UUID", "CLAS", "WRAP", "KTYP", "WPKY"])
      let isDeviceWrapped = BackupClassNumbers.deviceWrapped.contains(try #require(record.keyClass?.rawValue))
      #expect(record.wrap == (isDeviceWrapped ? [.device, .password] : .password))
      #expect(record.keyType == .symmetric)
      #expect(record.wrappedKey?.count == 40)
    }
    #expect(Set(keybag.classKeys.map(\.wrappedKey)).count == 11)
    #expect(BackupKeybag.standardRounds == 10_000_000)
  }

  @Test("In a keybag without a password, every keychain class requires the device, and there is only one step")
  func unencrypted() throws {
    let keybag = try make(nil).keybag
    #expect(tags(keybag.header) == ["VERS", "TYPE", "UUID", "HMCK", "WRAP", "SALT", "ITER"])
    for record in keybag.classKeys {
      let classNumber = try #require(record.keyClass?.rawValue)
      let isDeviceWrapped = BackupClassNumbers.deviceWrappedWithoutPassword.contains(classNumber)
      #expect(record.wrap == (isDeviceWrapped ? [.device, .password] : .password))
    }
    let keys = try keybag.unlock(password: .empty, deviceKey: nil)
    for classNumber in BackupClassNumbers.files { #expect(keys[classNumber] == .available) }
    for classNumber in BackupClassNumbers.deviceWrappedWithoutPassword { #expect(keys[classNumber] == .deviceBound) }
  }

  @Test(
    "A new keybag is unlocked with its password and device key after a round trip",
    arguments: [nil, "secret", "\u{1F511} caf\u{E9}"])
  func opens(password: String?) throws {
    let unlocked = try make(password)
    let read = try Keybag(parsing: unlocked.keybag.serialized())
    let keys = try read.unlock(password: password.map { Secret(utf8: $0) } ?? .empty, deviceKey: deviceKey())
    for classNumber in BackupClassNumbers.all {
      #expect(keys.revealed(classNumber) == unlocked.classKeys.revealed(classNumber))
      #expect(keys.revealed(classNumber)?.count == 32)
    }
    #expect(keys.keybagUUID == read.uuid)
  }

  @Test("Another device's key gives wrong keys for the this-device-only classes, without an error")
  func otherDevice() throws {
    let unlocked = try make("secret")
    let otherDeviceKey = try DeviceKey(Secret(copying: [UInt8](repeating: 8, count: 16)))
    let keys = try unlocked.keybag.unlock(password: Secret(utf8: "secret"), deviceKey: consume otherDeviceKey)
    #expect(keys[9] == .availableThroughDevice)
    #expect(keys.revealed(9) != unlocked.classKeys.revealed(9))
    #expect(keys.revealed(6) == unlocked.classKeys.revealed(6))
  }

  @Test("An empty password and a password of NUL bytes are rejected", arguments: ["", "\0", "\0\0"])
  func refusedPasswords(password: String) {
    let error = #expect(throws: DataProtectionError.self) { _ = try make(password) }
    #expect(error?.code == .unsupported)
  }

  @Test("A keybag with an iteration count that readers reject is not created")
  func refusedIterations() throws {
    for rounds in [Int.min, -1, 0, 19_990_001, .max] {
      let error = #expect(throws: DataProtectionError.self) { _ = try make("x", rounds: rounds) }
      #expect(error?.code == .unsupported)
    }
    _ = try make("x", rounds: 1)
  }

  @Test("The SHA-256 step may have up to 19,990,000 iterations, because the SHA-1 step has 10,000")
  func iterationLimits() throws {
    #expect(BackupKeybag.maximumRounds == 19_990_000)
    for rounds in [1, BackupKeybag.maximumRounds] {
      #expect(try BackupKeybag.validIterations(rounds) == UInt32(rounds))
    }
    for rounds in [-1, 0, BackupKeybag.maximumRounds + 1] {
      #expect(throws: DataProtectionError.self) { try BackupKeybag.validIterations(rounds) }
    }
  }

  @Test("The same seed gives the same keybag, and the system's random source gives different keybags")
  func reproducible() throws {
    func seeded() throws -> [UInt8] {
      try BackupKeybag.make(
        password: Secret(utf8: "x"), deviceKey: deviceKey(), rounds: 1, random: SeededRandomSource(seed: "s")
      ).keybag.serialized()
    }
    #expect(try seeded() == seeded())
    let first = try BackupKeybag.make(password: nil, deviceKey: deviceKey()).keybag
    let second = try BackupKeybag.make(password: nil, deviceKey: deviceKey()).keybag
    #expect(first.uuid != second.uuid)
  }

  @Test("Changing the password changes only salts and wraps, not the class keys")
  func rewrap() throws {
    let unlocked = try make("old")
    let changed = try BackupKeybag.rewrap(
      unlocked.keybag, from: Secret(utf8: "old"), to: Secret(utf8: "new"), random: random)
    let keys = try changed.unlock(password: Secret(utf8: "new"), deviceKey: deviceKey())
    for classNumber in BackupClassNumbers.all {
      #expect(keys.revealed(classNumber) == unlocked.classKeys.revealed(classNumber))
    }
    #expect(throws: DataProtectionError.self) { _ = try changed.unlock(password: Secret(utf8: "old"), deviceKey: nil) }
    #expect(changed.salt != unlocked.keybag.salt)
    #expect(changed.dpsl != unlocked.keybag.dpsl)
    #expect(changed.dpic == 1000)
    #expect(changed.uuid == unlocked.keybag.uuid)
    #expect(changed.serialized().count == unlocked.keybag.serialized().count)
    for (oldRecord, newRecord) in zip(unlocked.keybag.classKeys, changed.classKeys) {
      #expect(oldRecord.wrappedKey != newRecord.wrappedKey)
      var newRecordWithOldKey = newRecord
      newRecordWithOldKey.wrappedKey = oldRecord.wrappedKey
      #expect(newRecordWithOldKey == oldRecord)
    }
  }

  @Test("Changing the password requires the old password")
  func rewrapWithWrongPassword() throws {
    let keybag = try make("old").keybag
    let error = #expect(throws: DataProtectionError.self) {
      _ = try BackupKeybag.rewrap(keybag, from: Secret(utf8: "older"), to: Secret(utf8: "new"), random: random)
    }
    #expect(error?.code == .wrongPassword)
  }

  @Test("Changing the password requires that every class key can be unwrapped")
  func rewrapOfDamagedKeybag() throws {
    var damaged = try make("old").keybag
    // The class keys are stored from class 11 down, so this is class 8.
    damaged.classKeys[3].wrappedKey = damaged.classKeys[3].wrappedKey?.flipping(bit: 3)
    let error = #expect(throws: DataProtectionError.self) {
      _ = try BackupKeybag.rewrap(damaged, from: Secret(utf8: "old"), to: Secret(utf8: "new"), random: random)
    }
    #expect(error?.code == .damagedKeybag)
    #expect(error?.reason == "10 of 11 class keys can be unwrapped, class 8 cannot")
  }

  @Test("A keybag with one derivation step still has one step after the password was changed")
  func rewrapOneStep() throws {
    let original = try make(nil).keybag
    let changed = try BackupKeybag.rewrap(original, from: .empty, to: Secret(utf8: "new"), random: random)
    #expect(changed.dpic == nil)
    let keys = try changed.unlock(password: Secret(utf8: "new"), deviceKey: nil)
    #expect(keys[1] == .available)
  }
}

@Suite("Keybags of devices")
struct SystemKeybagTests {
  private let random = SeededRandomSource(seed: "a device")
  /// The classes whose keys the passcode wraps, except class 12, which exists only with a passcode.
  private let passcodeClasses: [UInt32] = [1, 2, 3, 5, 6, 7, 9, 10]
  /// The classes whose keys are available after a start, because only the device wraps them.
  private let deviceOnlyClasses: [UInt32] = [4, 8, 11]
  private let passcodeSetClass: UInt32 = 12

  private func hardware(_ byte: UInt8 = 1) throws -> HardwareUID {
    try HardwareUID(Secret(copying: [UInt8](repeating: byte, count: 32)))
  }

  private func make(_ passcode: String) throws -> UnlockedSystemKeybag {
    try SystemKeybag.make(passcode: Secret(utf8: passcode), hardware: hardware(), rounds: 100, random: random)
  }

  @Test("A keybag has twelve classes with a passcode and eleven without, with the right wraps")
  func shape() throws {
    for (passcode, classCount) in [("1234", 12), ("", 11)] {
      let unlocked = try make(passcode)
      let keybag = unlocked.keybag.keybag
      #expect(keybag.version == 4)
      #expect(keybag.type == .system)
      #expect(keybag.wrap == .device)
      #expect(keybag.iterations == 100)
      #expect(keybag.hmacKey?.count == 40)
      #expect(keybag.classKeys.compactMap { $0.keyClass?.rawValue } == Array(1...UInt32(classCount)))
      for record in keybag.classKeys {
        let isDeviceOnly = deviceOnlyClasses.contains(try #require(record.keyClass?.rawValue))
        #expect(record.wrap == (isDeviceOnly ? .device : [.device, .password]))
        #expect(record.wrappedKey?.count == (isDeviceOnly ? 32 : 40))
      }
      #expect(unlocked.keybag.isPasscodeSet == !passcode.isEmpty)
    }
    #expect(SystemKeybag.standardRounds == 50_000)
  }

  @Test("After a start, only the classes that need no passcode are available, and the others are locked")
  func beforeFirstUnlock() throws {
    let unlocked = try make("1234")
    let keybag = try SystemKeybag(parsing: unlocked.keybag.serialized())
    let keys = try keybag.unlockBeforeFirstUnlock(hardware: hardware())
    for classNumber in deviceOnlyClasses {
      #expect(keys[classNumber] == .availableThroughDevice)
      #expect(keys.revealed(classNumber) == unlocked.classKeys.revealed(classNumber))
    }
    for classNumber in passcodeClasses + [passcodeSetClass] {
      #expect(keys[classNumber] == .locked)
      #expect(keys.revealed(classNumber) == nil)
    }
  }

  @Test("The passcode unlocks all classes, and a wrong passcode unlocks none")
  func unlock() throws {
    let unlocked = try make("1234")
    let keybag = try SystemKeybag(parsing: unlocked.keybag.serialized())
    let keys = try keybag.unlock(passcode: Secret(utf8: "1234"), hardware: hardware())
    for classNumber: UInt32 in 1...12 {
      #expect(keys.revealed(classNumber) == unlocked.classKeys.revealed(classNumber))
    }
    for wrongPasscode in ["", "12345", "4321"] {
      let error = #expect(throws: DataProtectionError.self) {
        _ = try keybag.unlock(passcode: Secret(utf8: wrongPasscode), hardware: hardware())
      }
      #expect(error?.code == .wrongPasscode)
      #expect(error?.summary == "the passcode is wrong")
      #expect(error?.reason == "it unlocks none of the 9 class keys")
    }
  }

  @Test("A keybag without a passcode is unlocked with the empty passcode")
  func noPasscode() throws {
    let unlocked = try make("")
    let keys = try unlocked.keybag.unlock(passcode: .empty, hardware: hardware())
    #expect(keys[6] == .availableThroughDevice)
    #expect(keys[passcodeSetClass] == .absent)
  }

  @Test("Another device's chip cannot unlock a keybag, even with the right passcode")
  func otherHardware() throws {
    let keybag = try make("1234").keybag
    let error = #expect(throws: DataProtectionError.self) {
      _ = try keybag.unlock(passcode: Secret(utf8: "1234"), hardware: hardware(2))
    }
    #expect(error?.code == .damagedKeybag)
    #expect(throws: DataProtectionError.self) { _ = try keybag.unlockBeforeFirstUnlock(hardware: hardware(2)) }
  }

  @Test("Every changed byte is detected by the signature or by the reader")
  func tampering() throws {
    let bytes = try make("1234").keybag.serialized()
    for index in bytes.indices {
      var changed = bytes
      changed[index] ^= 0x10
      #expect(throws: (any Error).self, "byte \(index)") {
        let keybag = try SystemKeybag(parsing: changed)
        _ = try keybag.unlockBeforeFirstUnlock(hardware: hardware())
      }
    }
  }

  @Test("The signature is the HMAC-SHA1 of DATA with the key in HMCK, unwrapped with key 0x835")
  func signature() throws {
    let systemKeybag = try make("1234").keybag
    let wrappedHMACKey = try #require(systemKeybag.keybag.hmacKey)
    let hmacKey = try hardware().deviceKey().withKey { (deviceKey) throws(DataProtectionError) -> [UInt8] in
      try KeyWrap.unwrap(wrappedHMACKey, with: deviceKey)?.revealed ?? []
    }
    let expected = hmacSHA1(key: hmacKey, message: systemKeybag.keybag.serialized())
    #expect(systemKeybag.signed.signature == expected)
  }

  /// Computes HMAC (RFC 2104) with the tests' own SHA-1.
  private func hmacSHA1(key: [UInt8], message: [UInt8]) -> [UInt8] {
    let blockSize = 64
    let padded = key + [UInt8](repeating: 0, count: blockSize - key.count)
    return SHA1.hash(padded.map { $0 ^ 0x5C } + SHA1.hash(padded.map { $0 ^ 0x36 } + message))
  }

  @Test("Changing the passcode keeps every class key, and the old passcode no longer works")
  func changedPasscode() throws {
    let unlocked = try make("1234")
    let changed = try unlocked.keybag.changingPasscode(
      from: Secret(utf8: "1234"), to: Secret(utf8: "9876"), hardware: hardware(), random: random)
    for classNumber: UInt32 in 1...12 {
      #expect(changed.classKeys.revealed(classNumber) == unlocked.classKeys.revealed(classNumber))
    }
    #expect(changed.keybag.keybag.salt != unlocked.keybag.keybag.salt)
    #expect(throws: DataProtectionError.self) {
      _ = try changed.keybag.unlock(passcode: Secret(utf8: "1234"), hardware: hardware())
    }
    let keys = try changed.keybag.unlock(passcode: Secret(utf8: "9876"), hardware: hardware())
    #expect(keys.revealed(passcodeSetClass) == unlocked.classKeys.revealed(passcodeSetClass))
  }

  @Test("Removing the passcode destroys the key of class 12, and setting a passcode again creates a new key")
  func removeAndSet() throws {
    let original = try make("1234")
    let withoutPasscode = try original.keybag.changingPasscode(
      from: Secret(utf8: "1234"), to: .empty, hardware: hardware(), random: random)
    #expect(!withoutPasscode.keybag.isPasscodeSet)
    #expect(withoutPasscode.classKeys[passcodeSetClass] == .absent)
    #expect(withoutPasscode.classKeys.revealed(9) == original.classKeys.revealed(9))
    let withNewPasscode = try withoutPasscode.keybag.changingPasscode(
      from: .empty, to: Secret(utf8: "1234"), hardware: hardware(), random: random)
    #expect(withNewPasscode.keybag.isPasscodeSet)
    #expect(withNewPasscode.classKeys[passcodeSetClass] == .availableThroughDevice)
    #expect(withNewPasscode.classKeys.revealed(passcodeSetClass) != original.classKeys.revealed(passcodeSetClass))
    #expect(withNewPasscode.classKeys.revealed(9) == original.classKeys.revealed(9))
  }

  @Test("Changing the passcode requires the old passcode")
  func wrongPasscode() throws {
    let unlocked = try make("1234")
    let error = #expect(throws: DataProtectionError.self) {
      _ = try unlocked.keybag.changingPasscode(
        from: Secret(utf8: "0000"), to: Secret(utf8: "9876"), hardware: hardware(), random: random)
    }
    #expect(error?.code == .wrongPasscode)
  }

  @Test("A passcode of NUL bytes is rejected")
  func passcodeOfNULBytes() throws {
    #expect(throws: DataProtectionError.self) { _ = try make("\0") }
    let unlocked = try make("1234")
    #expect(throws: DataProtectionError.self) {
      _ = try unlocked.keybag.changingPasscode(
        from: Secret(utf8: "1234"), to: Secret(utf8: "\0\0"), hardware: hardware(), random: random)
    }
  }
}

@Suite("Unlocked keys in a device's memory")
struct ClassKeyMemoryTests {
  private func keys() throws -> ClassKeys { try SyntheticBackup().unlock(withDeviceKey: true) }

  @Test("A round trip preserves keys, availability and the keybag's UUID")
  func roundTrip() throws {
    let keys = try keys()
    let imported = try ClassKeys(importing: keys.exported())
    for classNumber: UInt32 in 0...12 {
      #expect(imported.revealed(classNumber) == keys.revealed(classNumber))
      #expect(imported[classNumber] == keys[classNumber])
    }
    #expect(imported.wrappedCount == 11)
    #expect(imported.unwrappedCount == 11)
    #expect(imported.keybagUUID == keys.keybagUUID)
  }

  @Test("Locking drops keys from the value and from later exports")
  func drop() throws {
    let keys = try keys()
    let droppedKey = try #require(keys.revealed(6))
    let remainingKey = try #require(keys.revealed(7))
    let lockedKeys = keys.dropping([.whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly])
    #expect(lockedKeys[6] == .locked)
    #expect(lockedKeys[9] == .locked)
    #expect(lockedKeys[7] == .available)
    #expect(lockedKeys[12] == .absent)
    let memory = try lockedKeys.exported().revealed
    #expect(!memory.contains(droppedKey))
    #expect(memory.contains(remainingKey))
    let imported = try ClassKeys(importing: Secret(copying: memory))
    #expect(imported[6] == .locked)
    #expect(imported.revealed(6) == nil)
    #expect(imported.revealed(7) == remainingKey)
  }

  @Test("A Curve25519 class keeps its public key in a round trip")
  func curve25519() throws {
    let vector = try TestVectors.section("curve25519_class_file_key")
    let entry = ClassKeys.Entry(
      availability: .available, key: .init(try Secret(vector["class_private"])),
      publicKey: try vector["class_public"].bytes)
    let keys = ClassKeys(
      keybagUUID: [UInt8](repeating: 0, count: 16), entries: [.fileCompleteUnlessOpen: entry], wrappedCount: 1,
      unwrappedCount: 1)
    let imported = try ClassKeys(importing: keys.exported())
    #expect(try imported.entries[.fileCompleteUnlessOpen]?.publicKey == vector["class_public"].bytes)
  }

  @Test("Incomplete or changed memory is rejected")
  func damage() throws {
    let memory = try keys().exported().revealed
    for count in [0, 1, 31, 63, 64, memory.count - 1] {
      #expect(throws: DataProtectionError.self) { _ = try ClassKeys(importing: Secret(copying: memory.prefix(count))) }
    }
    #expect(throws: DataProtectionError.self) { _ = try ClassKeys(importing: Secret(copying: memory + [0])) }
    for index in stride(from: 0, to: memory.count, by: 7) {
      #expect(throws: DataProtectionError.self, "byte \(index)") {
        _ = try ClassKeys(importing: Secret(copying: memory.flipping(bit: index * 8)))
      }
    }
  }
}
