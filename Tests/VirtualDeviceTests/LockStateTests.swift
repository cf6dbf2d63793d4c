import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import Testing

@testable import VirtualDevice

/// Apple Platform Security, "Keychain data protection".
@Suite("Accessibility of items by lock state")
struct LockStateTests {
  private let phones: Phones
  private let device: VirtualDevice

  init() throws {
    phones = try Phones()
    device = try phones.create()
    let session = try device.openSession()
    for protection in ProtectionClass.allCases { try session.add(protection.rawValue, protection) }
  }

  private func statuses() throws -> [ProtectionClass: Int32] {
    let session = try device.openSession(.reading)
    return try Dictionary(
      uniqueKeysWithValues: ProtectionClass.allCases.map { ($0, try session.statusOfReading($0.rawValue)) })
  }

  @Test("All items are accessible on an unlocked device")
  func unlocked() throws {
    #expect(try device.openSession(.reading).state == .unlocked)
    #expect(try statuses().values.allSatisfy { $0 == 0 })
  }

  @Test("Items that require an unlocked device are not accessible on a locked one")
  func locked() throws {
    try device.openSession().lock()
    #expect(try device.openSession(.reading).state == .locked)
    #expect(
      try statuses() == [
        .whenUnlocked: -25308, .whenUnlockedThisDeviceOnly: -25308, .whenPasscodeSetThisDeviceOnly: -25308,
        .afterFirstUnlock: 0, .afterFirstUnlockThisDeviceOnly: 0, .always: 0, .alwaysThisDeviceOnly: 0,
      ])
  }

  @Test("Before the first unlock, only items that are always accessible can be read")
  func beforeFirstUnlock() throws {
    try device.openSession().restart()
    #expect(try device.openSession(.reading).state == .beforeFirstUnlock)
    #expect(
      try statuses() == [
        .whenUnlocked: -25308, .whenUnlockedThisDeviceOnly: -25308, .whenPasscodeSetThisDeviceOnly: -25308,
        .afterFirstUnlock: -25308, .afterFirstUnlockThisDeviceOnly: -25308, .always: 0, .alwaysThisDeviceOnly: 0,
      ])
  }

  @Test("The passcode makes all items accessible again, after a lock and after a restart", arguments: [true, false])
  func unlockAgain(_ afterRestart: Bool) throws {
    try afterRestart ? device.openSession().restart() : device.openSession().lock()
    try device.openSession().unlock("1234")
    #expect(try device.openSession(.reading).state == .unlocked)
    #expect(try statuses().values.allSatisfy { $0 == 0 })
  }

  @Test("An item cannot be added if the key of its class is not in memory")
  func addWhileLocked() throws {
    let session = try device.openSession()
    try session.lock()
    #expect(try session.statusOfAdding("new", .whenUnlocked) == -25308)
    #expect(try session.statusOfAdding("new", .afterFirstUnlock) == 0)
    try session.restart()
    #expect(try session.statusOfAdding("newer", .afterFirstUnlock) == -25308)
    #expect(try session.statusOfAdding("newer", .always) == 0)
  }

  @Test("Locking a device that is not unlocked changes nothing")
  func lockTwice() throws {
    let session = try device.openSession()
    try session.lock()
    let memory = try device.read(.memory)
    try session.lock()
    #expect(try device.read(.memory) == memory)
    try session.restart()
    try session.lock()
    #expect(session.state == .beforeFirstUnlock)
    #expect(!device.has(.memory))
  }

  @Test("A device without a passcode cannot be locked")
  func lockWithoutPasscode() throws {
    let open = try phones.create("open", passcode: "").openSession()
    #expect(try code { try open.lock() } == .noPasscode)
    #expect(open.state == .unlocked)
    #expect(try code { try open.unlock("1234") } == .noPasscode)
    #expect(try code { try open.unlock("") } == nil)
  }

  @Test("An item without a class requires an unlocked device, but is always accessible on iOS 4")
  func defaultClass() throws {
    let old = DeviceOptions(identity: DeviceIdentity(productVersion: try ProductVersion("4.3.5")))
    for (device, expected) in [(device, Int32(-25308)), (try phones.create("old", old), 0)] {
      let session = try device.openSession()
      try session.add("plain", nil)
      try session.restart()
      #expect(try session.statusOfReading("plain") == expected)
    }
  }
}

@Suite("Class keys in the memory of a device")
struct MemoryTests {
  /// Returns the content of all files in the device's folder, and of the unwrapped memory.
  private func fileContents(of device: VirtualDevice) throws -> [[UInt8]] {
    var contents: [[UInt8]] = []
    for name in try FileManager.default.contentsOfDirectory(atPath: device.directory) {
      contents.append(try Array(Data(contentsOf: URL(fileURLWithPath: device.directory + "/" + name))))
    }
    if device.has(.memory) {
      let wrapped = Array(try device.read(.memory).dropFirst("keyhaul-memory/1\n".utf8.count))
      guard let memory = try KeyWrap.unwrap(wrapped, with: Secret(copying: try device.read(.hardware))) else {
        Issue.record("the hardware key does not unwrap the memory file")
        return contents
      }
      contents.append(memory.withBytes { bytes in bytes.map { $0 } })
    }
    return contents
  }

  private func contains(_ key: [UInt8], in contents: [[UInt8]]) -> Bool {
    contents.contains { Data($0).range(of: Data(key)) != nil }
  }

  @Test("A lock removes exactly the keys of classes 1, 6, 9 and 12 from all files")
  func lock() throws {
    let phones = try Phones()
    let device = try phones.create()
    let keys = try device.openSession().rawKeys(1...12)
    #expect(keys.count == 12)
    #expect(try keys.values.allSatisfy { contains($0, in: try fileContents(of: device)) })

    try device.openSession().lock()

    let contents = try fileContents(of: device)
    #expect(Set(keys.keys.filter { !contains(keys[$0] ?? [], in: contents) }) == [1, 6, 9, 12])
  }

  @Test("A restart removes all keys from the files, and the hardware key unwraps only classes 4, 8 and 11")
  func restart() throws {
    let phones = try Phones()
    let device = try phones.create()
    let keys = try device.openSession().rawKeys(1...12)
    try device.openSession().restart()

    let contents = try fileContents(of: device)
    #expect(keys.values.allSatisfy { !contains($0, in: contents) })
    #expect(!device.has(.memory))
    #expect(Set(try device.openSession().rawKeys(1...12).keys) == [4, 8, 11])
  }

  @Test("No file of an unlocked device contains an unencrypted class key")
  func noUnencryptedKeys() throws {
    let phones = try Phones()
    let device = try phones.create()
    let keys = try device.openSession().rawKeys(1...12)
    for name in try FileManager.default.contentsOfDirectory(atPath: device.directory) {
      let bytes = try Data(contentsOf: URL(fileURLWithPath: device.directory + "/" + name))
      #expect(keys.values.allSatisfy { bytes.range(of: Data($0)) == nil }, "\(name)")
    }
  }

  @Test(
    "After damage to the memory file, the device is in the same state as after a restart", arguments: [0, 5, 20, 400])
  func damaged(_ length: Int) throws {
    let phones = try Phones()
    let device = try phones.create()
    try device.write(Array(try device.read(.memory).prefix(length)), to: .memory)
    #expect(try device.openSession().state == .beforeFirstUnlock)
    try device.openSession().unlock("1234")
    #expect(try device.openSession().state == .unlocked)
  }

  @Test("The memory of an earlier keybag is not used")
  func earlierKeybag() throws {
    let phones = try Phones()
    let device = try phones.create()
    let memory = try device.read(.memory)
    try device.openSession().erase()
    try device.openSession().setPasscode(Secret(utf8: "1234"))
    try device.write(memory, to: .memory)
    #expect(try device.openSession().state == .beforeFirstUnlock)
  }
}

extension DeviceSession {
  /// Returns the class keys in memory, by class number.
  func rawKeys(_ classes: ClosedRange<UInt32>) -> [UInt32: [UInt8]] {
    var keys: [UInt32: [UInt8]] = [:]
    for number in classes {
      keys[number] = classKeys.rawKey(KeyClass(rawValue: number))
    }
    return keys
  }
}
