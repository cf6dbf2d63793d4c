import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import Testing

@testable import VirtualDevice

@Suite("Folders of devices")
struct DeviceSetTests {
  @Test("A new device is unlocked and has the default model and a unique identifier")
  func create() throws {
    let phones = try Phones()
    let session = try phones.create().openSession()

    #expect(session.state == .unlocked)
    #expect(session.isPasscodeSet)
    #expect(session.record.name == "phone")
    #expect(session.record.productType == "iPhone15,2")
    #expect(session.record.productVersion.text == "18.1")
    #expect(session.record.build == "22B83")
    #expect(session.record.created == Phones.now)
    #expect(session.record.udid.wholeMatch(of: /[0-9A-F]{8}-[0-9A-F]{16}/) != nil)
    #expect(session.record.serialNumber.wholeMatch(of: /[0-9A-Z]{10}/) != nil)
    #expect(try session.itemCount == 0)
  }

  @Test("A device without a passcode is unlocked, even after a restart")
  func createWithoutPasscode() throws {
    let phones = try Phones()
    let session = try phones.create(passcode: "").openSession()
    #expect(!session.isPasscodeSet)
    try session.restart()
    #expect(session.state == .unlocked)
  }

  @Test("Two devices have different hardware UIDs, identifiers and serial numbers")
  func different() throws {
    let phones = try Phones()
    let (device, otherDevice) = (try phones.create("one"), try phones.create("two"))
    #expect(try device.read(.hardware) != otherDevice.read(.hardware))
    let record = try device.openSession(.reading).record
    let otherRecord = try otherDevice.openSession(.reading).record
    #expect(record.udid != otherRecord.udid)
    #expect(record.serialNumber != otherRecord.serialNumber)
  }

  @Test("Only the owner can access a device's folder, regardless of the umask", arguments: [mode_t(0o000), 0o077])
  func modes(mask: mode_t) async {
    // A separate process, because a process has only one umask, and other tests create files at the same time.
    await #expect(processExitsWith: .exitCode(0)) { [mask = mask as mode_t] in
      let phones = try Phones()
      let previousMask = umask(mask)
      defer { umask(previousMask) }
      let device = try phones.create()
      let session = try device.openSession()
      try session.add("a", .whenUnlocked)
      try session.lock()
      for directory in [phones.home.path, device.directory] {
        guard try Self.permissions(directory) == 0o700 else { exit(1) }
      }
      for name in try FileManager.default.contentsOfDirectory(atPath: device.directory) {
        guard try Self.permissions(device.directory + "/" + name) == 0o600 else { exit(2) }
      }
    }
  }

  @Test("A closed device's folder contains exactly the documented files")
  func files() throws {
    let phones = try Phones()
    let device = try phones.create()
    try device.openSession().invalidate()
    let names = try FileManager.default.contentsOfDirectory(atPath: device.directory).sorted()
    #expect(names == ["device.json", "hardware.uid", "keybag", "keychain-2.db", "lock", "memory"])
  }

  @Test("A device cannot be created with a name that is in use")
  func exists() throws {
    let phones = try Phones()
    let udid = try phones.create().openSession(.reading).record.udid
    #expect(try code { _ = try phones.create() } == .exists)
    #expect(try phones.home.device(DeviceName("phone")).openSession(.reading).record.udid == udid)
  }

  @Test("The list of devices is sorted by name and contains only devices")
  func list() throws {
    let phones = try Phones()
    #expect(try phones.home.devices().isEmpty)
    _ = try phones.create("b")
    _ = try phones.create("a")
    try FileManager.default.createDirectory(atPath: phones.path("empty"), withIntermediateDirectories: false)
    try FileManager.default.createDirectory(atPath: phones.path(".c.tmp"), withIntermediateDirectories: false)
    try Data().write(to: URL(fileURLWithPath: phones.path("file")))
    #expect(try phones.home.devices().map(\.name.text) == ["a", "b"])
  }

  @Test("Creating a device removes the leftovers of a crash under its temporary name")
  func strayTemporary() throws {
    let phones = try Phones()
    _ = try phones.create("other")
    try FileManager.default.createDirectory(atPath: phones.path(".phone.tmp/deep"), withIntermediateDirectories: true)
    try Data([1]).write(to: URL(fileURLWithPath: phones.path(".phone.tmp/deep/keychain-2.db-wal")))
    _ = try phones.create()
    #expect(!FileManager.default.fileExists(atPath: phones.path(".phone.tmp")))
    #expect(try phones.home.devices().count == 2)
  }

  @Test("The leftovers of a killed deletion are removed, and nothing else is")
  func leftovers() throws {
    let phones = try Phones()
    let files = FileManager.default
    _ = try phones.create()
    _ = try phones.create("other")
    try files.moveItem(atPath: phones.path("phone"), toPath: phones.path(".phone.tmp"))
    try files.createDirectory(atPath: phones.path(".mine.tmp"), withIntermediateDirectories: false)
    try Data([1]).write(to: URL(fileURLWithPath: phones.path(".mine.tmp/diary.txt")))
    try files.createDirectory(atPath: phones.path(".not a name.tmp"), withIntermediateDirectories: false)
    phones.home.clearLeftovers()
    #expect(
      try files.contentsOfDirectory(atPath: phones.home.path).sorted() == [".mine.tmp", ".not a name.tmp", "other"])
  }

  @Test("While another process creates or deletes a device, its temporary folder is not removed")
  func temporaryFolderInUse() throws {
    let phones = try Phones()
    _ = try phones.create()
    try FileManager.default.moveItem(atPath: phones.path("phone"), toPath: phones.path(".phone.tmp"))
    let otherLock = try DeviceSetLock(
      phones.home.path, wait: .zero, clock: DeviceEnvironment.system.clock, DeviceEnvironment.system.files)
    phones.home.clearLeftovers()
    #expect(FileManager.default.fileExists(atPath: phones.path(".phone.tmp/hardware.uid")))
    _ = consume otherLock
  }

  @Test("A device is not deleted while its folder contains other files")
  func unrelatedFile() throws {
    let phones = try Phones()
    _ = try phones.create()
    for name in ["diary.txt", "b"] {
      let path = phones.path("phone/\(name)")
      try Data([1]).write(to: URL(fileURLWithPath: path))
      #expect(try code { try phones.home.delete(DeviceName("phone")) } == .deviceOccupied)
      #expect(try phones.home.unrecognizedFiles(of: DeviceName("phone")) == [name])
      try FileManager.default.removeItem(atPath: path)
    }
    try phones.home.delete(DeviceName("phone"))
  }

  @Test("Deleting a device removes its folder")
  func delete() throws {
    let phones = try Phones()
    _ = try phones.create()
    try phones.home.delete(DeviceName("phone"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: phones.home.path).isEmpty)
    #expect(try code { _ = try phones.home.device(DeviceName("phone")) } == .deviceNotFound)
    #expect(try code { try phones.home.delete(DeviceName("phone")) } == .deviceNotFound)
  }

  @Test("A folder with only a `device.json` is not a device and is never deleted")
  func unrelatedDirectory() throws {
    let phones = try Phones()
    try FileManager.default.createDirectory(atPath: phones.path("project"), withIntermediateDirectories: true)
    try Data("{}".utf8).write(to: URL(fileURLWithPath: phones.path("project/device.json")))
    #expect(try code { try phones.home.delete(DeviceName("project")) } == .deviceNotFound)
    #expect(FileManager.default.fileExists(atPath: phones.path("project/device.json")))
  }

  @Test("An argument with a slash is a path, and any other is a name")
  func locate() throws {
    let deviceSet = DeviceSet(path: "/home")
    func directory(for argument: String) throws -> String {
      let (deviceSet, name) = try DeviceSet.locate(argument, in: deviceSet)
      return deviceSet.directory(of: name)
    }
    #expect(try directory(for: "phone") == "/home/phone")
    #expect(try directory(for: "./phone") == "./phone")
    #expect(try directory(for: "/phone") == "/phone")
    #expect(try directory(for: "a/b/phone//") == "a/b/phone")
    #expect(try code { _ = try DeviceSet.locate("a/..", in: deviceSet) } == .badName)
    #expect(try code { _ = try DeviceSet.locate("a/", in: deviceSet) } == nil)
    #expect(try code { _ = try DeviceSet.locate("/", in: deviceSet) } == .badName)
  }

  @Test("A device with a limit of zero wrong passcodes is not created")
  func badLimit() throws {
    let phones = try Phones()
    #expect(try code { _ = try phones.create("phone", DeviceOptions(eraseAfterFailures: 0)) } == .badLimit)
    #expect(try FileManager.default.contentsOfDirectory(atPath: phones.home.path).isEmpty)
  }

  private static func permissions(_ path: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
  }
}

@Suite("Temporary folders of devices")
struct TemporaryDeviceSetTests {
  @Test("A temporary folder is deleted with its last reference")
  func temporary() throws {
    var temporary: TemporaryDeviceSet? = try TemporaryDeviceSet(environment: DeviceEnvironment(passcodeRounds: 1))
    let path = try #require(temporary?.devices.path)
    let device = try #require(try temporary?.devices.create(DeviceName("phone"), passcode: Secret(utf8: "")))
    try device.openSession().add("plain", .whenUnlocked)
    #expect(FileManager.default.fileExists(atPath: path + "/phone/device.json"))
    temporary = nil
    #expect(!FileManager.default.fileExists(atPath: path))
  }
}
