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

  /// Returns the status of reading the item of each class.
  private func statuses() throws -> [ProtectionClass: SecItemStatus] {
    let session = try device.openSession(.reading)
    return try Dictionary(
      uniqueKeysWithValues: ProtectionClass.allCases.map { ($0, try session.statusOfReading($0.rawValue)) })
  }

  @Test("All items are accessible on an unlocked device")
  func unlocked() throws {
    #expect(try device.openSession(.reading).state == .unlocked)
    #expect(try statuses().values.allSatisfy { $0 == .success })
  }

  @Test("Items that require an unlocked device are not accessible on a locked one")
  func locked() throws {
    try device.openSession().lock()
    #expect(try device.openSession(.reading).state == .locked)
    #expect(
      try statuses() == [
        .whenUnlocked: .interactionNotAllowed, .whenUnlockedThisDeviceOnly: .interactionNotAllowed,
        .whenPasscodeSetThisDeviceOnly: .interactionNotAllowed,
        .afterFirstUnlock: .success, .afterFirstUnlockThisDeviceOnly: .success, .always: .success,
        .alwaysThisDeviceOnly: .success,
      ])
  }

  @Test("Before the first unlock, only items that are always accessible can be read")
  func beforeFirstUnlock() throws {
    try device.openSession().restart()
    #expect(try device.openSession(.reading).state == .beforeFirstUnlock)
    #expect(
      try statuses() == [
        .whenUnlocked: .interactionNotAllowed, .whenUnlockedThisDeviceOnly: .interactionNotAllowed,
        .whenPasscodeSetThisDeviceOnly: .interactionNotAllowed,
        .afterFirstUnlock: .interactionNotAllowed, .afterFirstUnlockThisDeviceOnly: .interactionNotAllowed,
        .always: .success, .alwaysThisDeviceOnly: .success,
      ])
  }

  @Test("The passcode makes all items accessible again, after a lock and after a restart", arguments: [true, false])
  func unlockAgain(_ isAfterRestart: Bool) throws {
    if isAfterRestart {
      try device.openSession().restart()
    } else {
      try device.openSession().lock()
    }
    try device.openSession().unlock("1234")
    #expect(try device.openSession(.reading).state == .unlocked)
    #expect(try statuses().values.allSatisfy { $0 == .success })
  }

  @Test("An item cannot be added if the key of its class is not in memory")
  func addWhileLocked() throws {
    let session = try device.openSession()
    try session.lock()
    #expect(try session.statusOfAdding("new", .whenUnlocked) == .interactionNotAllowed)
    #expect(try session.statusOfAdding("new", .afterFirstUnlock) == .success)
    try session.restart()
    #expect(try session.statusOfAdding("newer", .afterFirstUnlock) == .interactionNotAllowed)
    #expect(try session.statusOfAdding("newer", .always) == .success)
  }

  @Test("Locking a locked device changes nothing")
  func lockTwice() throws {
    let session = try device.openSession()
    try session.lock()
    let memory = try device.read(.memory)
    try session.lock()
    #expect(try device.read(.memory) == memory)
  }

  @Test("Locking a device before its first unlock changes nothing")
  func lockBeforeFirstUnlock() throws {
    let session = try device.openSession()
    try session.restart()
    try session.lock()
    #expect(session.state == .beforeFirstUnlock)
    #expect(!device.has(.memory))
  }

  @Test("A device without a passcode cannot be locked")
  func lockWithoutPasscode() throws {
    let session = try phones.create("open", passcode: "").openSession()
    #expect(try code { try session.lock() } == .noPasscode)
    #expect(session.state == .unlocked)
    #expect(try code { try session.unlock("1234") } == .noPasscode)
    #expect(try code { try session.unlock("") } == nil)
  }

  @Test(
    "An item without a class requires an unlocked device, but is always accessible on iOS 4",
    arguments: [("18.1", .interactionNotAllowed), ("4.3.5", .success)] as [(String, SecItemStatus)])
  func defaultClass(version: String, status: SecItemStatus) throws {
    let options = DeviceOptions(identity: DeviceIdentity(productVersion: try ProductVersion(version)))
    let session = try phones.create("other", options).openSession()
    try session.add("plain", nil)
    try session.restart()
    #expect(try session.statusOfReading("plain") == status)
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
        Issue.record("the hardware UID does not unwrap the memory file")
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
    // The classes that require an unlocked device: one of files and three of keychain items.
    #expect(Set(keys.keys.filter { !contains(keys[$0] ?? [], in: contents) }) == [1, 6, 9, 12])
  }

  @Test("A restart removes all keys from the files, and the device key unwraps only classes 4, 8 and 11")
  func restart() throws {
    let phones = try Phones()
    let device = try phones.create()
    let keys = try device.openSession().rawKeys(1...12)
    try device.openSession().restart()

    let contents = try fileContents(of: device)
    #expect(keys.values.allSatisfy { !contains($0, in: contents) })
    #expect(!device.has(.memory))
    // The classes that are always accessible: one of files and two of keychain items.
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
    "After damage to the memory file, the device is in the same state as after a restart",
    // The lengths of an empty file, of a file with a part of the 17 bytes of text at its beginning, and of two files
    // with a part of the wrapped keys.
    arguments: [0, 5, 20, 400])
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
    for keyClass in classes { keys[keyClass] = classKeys.rawKey(KeyClass(rawValue: keyClass)) }
    return keys
  }
}
