import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import Keychains
import Testing

@testable import VirtualDevice

@Suite("Erased devices")
struct EraseTests {
  @Test("An erased device keeps its hardware UID, name, identifier and serial number, but no passcode, keys or items")
  func erase() throws {
    let phones = try Phones()
    let device = try phones.create()
    let session = try device.openSession()
    try session.add("plain", .always)
    let record = session.record
    let (hardware, keybag) = (try device.read(.hardware), try device.read(.keybag))
    let keys = session.rawKeys(1...12)
    try session.recordBackup(at: Phones.now)
    try session.lock()

    try session.erase()

    #expect(session.state == .unlocked)
    #expect(!session.isPasscodeSet)
    #expect(try session.itemCount == 0)
    #expect(session.record.udid == record.udid)
    #expect(session.record.name == record.name)
    #expect(session.record.serialNumber == record.serialNumber)
    #expect(session.record.lastBackup == nil)
    #expect(try device.read(.hardware) == hardware)
    #expect(try device.read(.keybag) != keybag)
    let newKeys = session.rawKeys(1...12)
    // Without a passcode, class 12 has no key.
    #expect(newKeys.count == 11)
    #expect(Set(newKeys.values).isDisjoint(with: keys.values))
  }

  @Test("A reopened device is still erased and accepts new items")
  func reopened() throws {
    let phones = try Phones()
    let device = try phones.create()
    try device.openSession().add("plain", .always)
    try device.openSession().erase()
    let session = try device.openSession()
    #expect(try session.statusOfReading("plain") == .itemNotFound)
    #expect(try session.statusOfAdding("plain", .whenUnlocked) == .success)
    try session.restart()
    #expect(try session.statusOfReading("plain") == .success)
  }

  @Test("No file of an erased device contains data of an earlier item")
  func noTraces() throws {
    let phones = try Phones()
    let device = try phones.create()
    var item = KeychainItem(kind: .genericPassword)
    item[.service] = .string("remains")
    item[.persistentReference] = nil
    item.secret = SensitiveBytes(copying: [1, 2, 3])
    let reference = try device.openSession().add(item).persistentReference
    #expect(try fileContents(of: device).range(of: Data(reference)) != nil)
    try device.openSession().erase()
    #expect(try fileContents(of: device).range(of: Data(reference)) == nil)
  }

  private func fileContents(of device: VirtualDevice) throws -> Data {
    var contents = Data()
    for name in try FileManager.default.contentsOfDirectory(atPath: device.directory) {
      contents += try Data(contentsOf: URL(fileURLWithPath: device.directory + "/" + name))
    }
    return contents
  }
}

@Suite("Copied device folders")
struct CopiedDirectoryTests {
  private func copy(_ device: VirtualDevice, in phones: Phones) throws -> VirtualDevice {
    try FileManager.default.copyItem(atPath: device.directory, toPath: phones.path("copy"))
    return try phones.home.device(DeviceName("copy"))
  }

  @Test("A copy without the hardware UID cannot be opened with any passcode")
  func withoutHardware() throws {
    let phones = try Phones()
    let copy = try copy(try phones.create(), in: phones)
    try FileManager.default.removeItem(atPath: DeviceFile.hardware.path(in: copy.directory))
    #expect(try code { _ = try copy.openSession() } == .deviceDamaged)
  }

  @Test("A copy of a locked or unlocked device with another hardware UID cannot be opened", arguments: [true, false])
  func withOtherHardware(_ isLocked: Bool) throws {
    let phones = try Phones()
    let device = try phones.create()
    if isLocked { try device.openSession().lock() }
    let copy = try copy(device, in: phones)
    try copy.write(try phones.create("other").read(.hardware), to: .hardware)
    #expect(try code { try copy.openSession().unlock("1234") } == .deviceDamaged)
  }

  @Test("A copy with another hardware UID and its keybag cannot decrypt the items")
  func withOtherHardwareAndBag() throws {
    let phones = try Phones()
    let device = try phones.create()
    try device.openSession().add("plain", .whenUnlocked)
    let otherDevice = try phones.create("other")
    let copy = try copy(device, in: phones)
    for file in [DeviceFile.hardware, .keybag] { try copy.write(try otherDevice.read(file), to: file) }
    let session = try copy.openSession()
    #expect(session.state == .beforeFirstUnlock)
    try session.unlock("1234")
    #expect(try session.statusOfReading("plain") == .itemNotFound)
    #expect(try session.find(.init(wantsSecret: true)).undecodableRows.count == 1)
  }

  @Test("A complete copy works like the original device")
  func complete() throws {
    let phones = try Phones()
    let device = try phones.create()
    try device.openSession().add("plain", .whenUnlocked)
    #expect(try copy(device, in: phones).openSession().secret(of: "plain") == "secret")
  }
}
