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

  @Test("A keybag with a password has the fields, order and wraps of a real one")
  func encrypted() throws {
    let keybag = try make("secret").keybag
    #expect(
      tags(keybag.header) == ["VERS", "TYPE", "UUID", "HMCK", "WRAP", "SALT", "ITER", "DPWT", "DPIC", "DPSL"])
    #expect(keybag.version == 4)
    #expect(keybag.type == .backup)
    #expect(keybag.hmacKey == [UInt8](repeating: 0, count: 40))
    #expect(keybag.wrap == [])
    #expect(keybag.iterations == 10_000)
    #expect(keybag.dpwt == 1)
    #expect(keybag.dpic == 1000)
    #expect(keybag.salt?.count == 20)
    #expect(keybag.dpsl?.count == 20)
    #expect(keybag.classKeys.map { $0.keyClass?.rawValue } == (1...11).reversed())
    for record in keybag.classKeys {
      #expect(tags(record.records) == ["UUID", "CLAS", "WRAP", "KTYP", "WPKY"])
      let isDeviceWrapped = [5, 9, 10, 11].contains(record.keyClass?.rawValue)
      #expect(record.wrap == (isDeviceWrapped ? [.device, .password] : .password))
      #expect(record.keyType == .symmetric)
      #expect(record.wrappedKey?.count == 40)
    }
    #expect(Set(keybag.classKeys.map(\.wrappedKey)).count == 11)
    #expect(BackupKeybag.standardRounds == 10_000_000)
  }

  @Test("In a keybag without a password, every keychain class requires the device, and there is no second round")
  func unencrypted() throws {
    let keybag = try make(nil).keybag
    #expect(tags(keybag.header) == ["VERS", "TYPE", "UUID", "HMCK", "WRAP", "SALT", "ITER"])
    for record in keybag.classKeys {
      let number = try #require(record.keyClass?.rawValue)
      #expect(record.wrap == (number >= 5 ? [.device, .password] : .password))
    }
    let opened = try keybag.unlock(password: .empty, deviceKey: nil)
    for number: UInt32 in 1...4 { #expect(opened[number] == .available) }
    for number: UInt32 in 5...11 { #expect(opened[number] == .deviceBound) }
  }

  @Test(
    "A new keybag is unlocked with its password and device after a round trip",
    arguments: [nil, "secret", "\u{1F511} caf\u{E9}"])
  func opens(password: String?) throws {
    let made = try make(password)
    let read = try Keybag(parsing: made.keybag.serialized())
    let keys = try read.unlock(password: password.map { Secret(utf8: $0) } ?? .empty, deviceKey: deviceKey())
    for number: UInt32 in 1...11 {
      #expect(keys.revealed(number) == made.classKeys.revealed(number))
      #expect(keys.revealed(number)?.count == 32)
    }
    #expect(keys.keybagUUID == read.uuid)
  }

  @Test("Another device's key silently unwraps other bytes for the this-device-only classes")
  func otherDevice() throws {
    let made = try make("secret")
    let other = try DeviceKey(Secret(copying: [UInt8](repeating: 8, count: 16)))
    let keys = try made.keybag.unlock(password: Secret(utf8: "secret"), deviceKey: consume other)
    #expect(keys[9] == .availableThroughDevice)
    #expect(keys.revealed(9) != made.classKeys.revealed(9))
    #expect(keys.revealed(6) == made.classKeys.revealed(6))
  }

  @Test("An empty password, one of NUL bytes, and counts that readers reject are rejected")
  func refusals() throws {
    for password in ["", "\0", "\0\0"] {
      let error = #expect(throws: DataProtectionError.self) { _ = try make(password) }
      #expect(error?.code == .unsupported)
    }
    for rounds in [Int.min, -1, 0, 19_990_001, .max] {
      let error = #expect(throws: DataProtectionError.self) { _ = try make("x", rounds: rounds) }
      #expect(error?.code == .unsupported)
    }
    _ = try make("x", rounds: 1)
    // Both ends of the range, without the derivation itself. The second derivation has 10,000 iterations of its own.
    #expect(BackupKeybag.maximumRounds == 19_990_000)
    for rounds in [1, BackupKeybag.maximumRounds] {
      #expect(try BackupKeybag.validIterations(rounds) == UInt32(rounds))
    }
    for rounds in [-1, 0, BackupKeybag.maximumRounds + 1] {
      #expect(throws: DataProtectionError.self) { try BackupKeybag.validIterations(rounds) }
    }
  }

  @Test("The same seed gives the same keybag, and the system's random source never does")
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
    let made = try make("old")
    let changed = try BackupKeybag.rewrap(
      made.keybag, from: Secret(utf8: "old"), to: Secret(utf8: "new"), random: random)
    let keys = try changed.unlock(password: Secret(utf8: "new"), deviceKey: deviceKey())
    for number: UInt32 in 1...11 { #expect(keys.revealed(number) == made.classKeys.revealed(number)) }
    #expect(throws: DataProtectionError.self) { _ = try changed.unlock(password: Secret(utf8: "old"), deviceKey: nil) }
    #expect(changed.salt != made.keybag.salt)
    #expect(changed.dpsl != made.keybag.dpsl)
    #expect(changed.dpic == 1000)
    #expect(changed.uuid == made.keybag.uuid)
    #expect(changed.serialized().count == made.keybag.serialized().count)
    for (before, after) in zip(made.keybag.classKeys, changed.classKeys) {
      #expect(before.wrappedKey != after.wrappedKey)
      var restored = after
      restored.wrappedKey = before.wrappedKey
      #expect(restored == before)
    }
  }

  @Test("Changing the password requires the old one, and that every class key can be unwrapped")
  func rewrapRefusals() throws {
    let made = try make("old")
    let wrong = #expect(throws: DataProtectionError.self) {
      _ = try BackupKeybag.rewrap(made.keybag, from: Secret(utf8: "older"), to: Secret(utf8: "new"), random: random)
    }
    #expect(wrong?.code == .wrongPassword)
    var damaged = made.keybag
    damaged.classKeys[3].wrappedKey = damaged.classKeys[3].wrappedKey?.flipping(bit: 3)
    let error = #expect(throws: DataProtectionError.self) {
      _ = try BackupKeybag.rewrap(damaged, from: Secret(utf8: "old"), to: Secret(utf8: "new"), random: random)
    }
    #expect(error?.code == .damagedKeybag)
    #expect(error?.reason == "10 of 11 class keys can be unwrapped, class 8 cannot")
  }

  @Test("A keybag of an old iOS version keeps its single round")
  func rewrapOneRound() throws {
    var bag = try make(nil).keybag
    bag = try BackupKeybag.rewrap(bag, from: .empty, to: Secret(utf8: "new"), random: random)
    #expect(bag.dpic == nil)
    let keys = try bag.unlock(password: Secret(utf8: "new"), deviceKey: nil)
    #expect(keys[1] == .available)
  }
}

@Suite("Keybags of devices")
struct SystemKeybagTests {
  private let random = SeededRandomSource(seed: "a device")
  private let passcodeClasses: [UInt32] = [1, 2, 3, 5, 6, 7, 9, 10]
  private let bootClasses: [UInt32] = [4, 8, 11]

  private func hardware(_ byte: UInt8 = 1) throws -> HardwareUID {
    try HardwareUID(Secret(copying: [UInt8](repeating: byte, count: 32)))
  }

  private func make(_ passcode: String) throws -> UnlockedSystemKeybag {
    try SystemKeybag.make(passcode: Secret(utf8: passcode), hardware: hardware(), rounds: 100, random: random)
  }

  @Test("A keybag has twelve classes with a passcode and eleven without, with the right wraps")
  func shape() throws {
    for (passcode, count) in [("1234", 12), ("", 11)] {
      let made = try make(passcode)
      let keybag = made.keybag.keybag
      #expect(keybag.version == 4)
      #expect(keybag.type == .system)
      #expect(keybag.wrap == .device)
      #expect(keybag.iterations == 100)
      #expect(keybag.hmacKey?.count == 40)
      #expect(keybag.classKeys.compactMap { $0.keyClass?.rawValue } == Array(1...UInt32(count)))
      for record in keybag.classKeys {
        let isBoot = bootClasses.contains(try #require(record.keyClass?.rawValue))
        #expect(record.wrap == (isBoot ? .device : [.device, .password]))
        #expect(record.wrappedKey?.count == (isBoot ? 32 : 40))
      }
      #expect(made.keybag.isPasscodeSet == !passcode.isEmpty)
    }
    #expect(SystemKeybag.standardRounds == 50_000)
  }

  @Test("After a start, only the classes that need no passcode are available, and the others are locked")
  func beforeFirstUnlock() throws {
    let made = try make("1234")
    let bag = try SystemKeybag(parsing: made.keybag.serialized())
    let keys = try bag.unlockBeforeFirstUnlock(hardware: hardware())
    for number in bootClasses {
      #expect(keys[number] == .availableThroughDevice)
      #expect(keys.revealed(number) == made.classKeys.revealed(number))
    }
    for number in passcodeClasses + [12] {
      #expect(keys[number] == .locked)
      #expect(keys.revealed(number) == nil)
    }
  }

  @Test("The passcode unlocks all classes, and a wrong one none")
  func unlock() throws {
    let made = try make("1234")
    let bag = try SystemKeybag(parsing: made.keybag.serialized())
    let keys = try bag.unlock(passcode: Secret(utf8: "1234"), hardware: hardware())
    for number: UInt32 in 1...12 { #expect(keys.revealed(number) == made.classKeys.revealed(number)) }
    for wrong in ["", "12345", "4321"] {
      let error = #expect(throws: DataProtectionError.self) {
        _ = try bag.unlock(passcode: Secret(utf8: wrong), hardware: hardware())
      }
      #expect(error?.code == .wrongPasscode)
      #expect(error?.summary == "the passcode is wrong")
      #expect(error?.reason == "it unlocks none of the 9 class keys")
    }
  }

  @Test("A keybag without a passcode is unlocked with the empty one")
  func noPasscode() throws {
    let made = try make("")
    let keys = try made.keybag.unlock(passcode: .empty, hardware: hardware())
    #expect(keys[6] == .availableThroughDevice)
    #expect(keys[12] == .absent)
  }

  @Test("Other hardware cannot unlock a keybag, with any passcode")
  func otherHardware() throws {
    let bag = try make("1234").keybag
    let error = #expect(throws: DataProtectionError.self) {
      _ = try bag.unlock(passcode: Secret(utf8: "1234"), hardware: hardware(2))
    }
    #expect(error?.code == .damagedKeybag)
    #expect(throws: DataProtectionError.self) { _ = try bag.unlockBeforeFirstUnlock(hardware: hardware(2)) }
  }

  @Test("Every changed byte is detected by the signature or by the reader")
  func tampering() throws {
    let bytes = try make("1234").keybag.serialized()
    for index in bytes.indices {
      var changed = bytes
      changed[index] ^= 0x10
      #expect(throws: (any Error).self, "byte \(index)") {
        let bag = try SystemKeybag(parsing: changed)
        _ = try bag.unlockBeforeFirstUnlock(hardware: hardware())
      }
    }
  }

  @Test("The signature is the HMAC-SHA1 of DATA with the key in HMCK, unwrapped with key 0x835")
  func signature() throws {
    let bag = try make("1234").keybag
    let wrapped = try #require(bag.keybag.hmacKey)
    let key = try hardware().deviceKey().withKey { (kek) throws(DataProtectionError) -> [UInt8] in
      try KeyWrap.unwrap(wrapped, with: kek)?.revealed ?? []
    }
    let expected = hmacSHA1(key: key, message: bag.keybag.serialized())
    #expect(bag.signed.signature == expected)
  }

  /// Computes HMAC (RFC 2104) with the tests' own SHA-1.
  private func hmacSHA1(key: [UInt8], message: [UInt8]) -> [UInt8] {
    let padded = key + [UInt8](repeating: 0, count: 64 - key.count)
    return SHA1.hash(padded.map { $0 ^ 0x5C } + SHA1.hash(padded.map { $0 ^ 0x36 } + message))
  }

  @Test("Changing the passcode keeps every class key, and the old passcode no longer works")
  func change() throws {
    let made = try make("1234")
    let changed = try made.keybag.changingPasscode(
      from: Secret(utf8: "1234"), to: Secret(utf8: "9876"), hardware: hardware(), random: random)
    for number: UInt32 in 1...12 {
      #expect(changed.classKeys.revealed(number) == made.classKeys.revealed(number))
    }
    #expect(changed.keybag.keybag.salt != made.keybag.keybag.salt)
    #expect(throws: DataProtectionError.self) {
      _ = try changed.keybag.unlock(passcode: Secret(utf8: "1234"), hardware: hardware())
    }
    let keys = try changed.keybag.unlock(passcode: Secret(utf8: "9876"), hardware: hardware())
    #expect(keys.revealed(12) == made.classKeys.revealed(12))
  }

  @Test("Removing the passcode destroys class 12, and setting one again creates a new key")
  func removeAndSet() throws {
    let first = try make("1234")
    let without = try first.keybag.changingPasscode(
      from: Secret(utf8: "1234"), to: .empty, hardware: hardware(), random: random)
    #expect(!without.keybag.isPasscodeSet)
    #expect(without.classKeys[12] == .absent)
    #expect(without.classKeys.revealed(9) == first.classKeys.revealed(9))
    let again = try without.keybag.changingPasscode(
      from: .empty, to: Secret(utf8: "1234"), hardware: hardware(), random: random)
    #expect(again.keybag.isPasscodeSet)
    #expect(again.classKeys[12] == .availableThroughDevice)
    #expect(again.classKeys.revealed(12) != first.classKeys.revealed(12))
    #expect(again.classKeys.revealed(9) == first.classKeys.revealed(9))
  }

  @Test("Changing the passcode requires the old one, and a passcode of NUL bytes is rejected")
  func refusals() throws {
    let made = try make("1234")
    let error = #expect(throws: DataProtectionError.self) {
      _ = try made.keybag.changingPasscode(
        from: Secret(utf8: "0000"), to: Secret(utf8: "9876"), hardware: hardware(), random: random)
    }
    #expect(error?.code == .wrongPasscode)
    #expect(throws: DataProtectionError.self) { _ = try make("\0") }
    #expect(throws: DataProtectionError.self) {
      _ = try made.keybag.changingPasscode(
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
    let back = try ClassKeys(importing: keys.exported())
    for number: UInt32 in 0...12 {
      #expect(back.revealed(number) == keys.revealed(number))
      #expect(back[number] == keys[number])
    }
    let counts = [back.wrappedCount, back.unwrappedCount]
    #expect(counts == [11, 11])
    let uuids = [back.keybagUUID, keys.keybagUUID]
    #expect(uuids[0] == uuids[1])
  }

  @Test("Locking drops keys from the value and from later exports")
  func drop() throws {
    var keys = try keys()
    let revealed = [keys.revealed(6), keys.revealed(7)]
    let dropped = try #require(revealed[0])
    let kept = try #require(revealed[1])
    keys = keys.dropping([.whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly])
    #expect(keys[6] == .locked)
    #expect(keys[9] == .locked)
    #expect(keys[7] == .available)
    #expect(keys[12] == .absent)
    let memory = try keys.exported().revealed
    #expect(!memory.contains(dropped))
    #expect(memory.contains(kept))
    let back = try ClassKeys(importing: Secret(copying: memory))
    #expect(back[6] == .locked)
    #expect(back.revealed(6) == nil)
    #expect(back.revealed(7) == kept)
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
    let back = try ClassKeys(importing: keys.exported())
    let publicKey = back.entries[.fileCompleteUnlessOpen]?.publicKey
    #expect(try publicKey == vector["class_public"].bytes)
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
