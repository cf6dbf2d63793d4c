import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Keychains
import Testing

@testable import VirtualDevice

@Suite("Device records")
struct RecordTests {
  private func recordText(_ device: VirtualDevice) throws -> String {
    String(decoding: try device.read(.record), as: UTF8.self)
  }

  @Test("A device is created if its record is at the size limit for new devices, but not with one byte more")
  func longestRecord() throws {
    let phones = try Phones()
    func options(appNameByteCount: Int) -> DeviceOptions {
      let name = String(repeating: "a", count: appNameByteCount)
      return DeviceOptions(apps: [DeviceApp(name: name, accessGroups: ["A.chat"])])
    }
    let limit = DeviceFile.record.sizeLimit - DeviceRecord.spareByteCount
    let shortestByteCount = try phones.create("phone0", options(appNameByteCount: 1)).read(.record).count
    let longestNameByteCount = limit - shortestByteCount + 1
    #expect(try phones.create("phone1", options(appNameByteCount: longestNameByteCount)).read(.record).count == limit)
    let error = #expect(throws: KeyhaulError.self) {
      try phones.create("phone2", options(appNameByteCount: longestNameByteCount + 1))
    }
    let reason = "device.json has \(limit + 1) bytes; the limit for a new device is \(limit)"
    #expect(error?.code == .badFixture && error?.reason.hasSuffix(reason) == true)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: phones.home.path).sorted().filter { $0.contains("phone") }
        == ["phone0", "phone1"])
  }

  @Test("A record is JSON with the documented members")
  func format() throws {
    let phones = try Phones()
    let options = DeviceOptions(apps: [DeviceApp(name: "chat", accessGroups: ["A.chat", "A.shared"])])
    let device = try phones.create("phone", options)
    let record = try device.openSession(.reading).record
    #expect(
      try recordText(device) == """
        {
          "apps": [
            {
              "groups": [
                "A.chat",
                "A.shared"
              ],
              "name": "chat"
            }
          ],
          "build": "22B83",
          "created": "\(Timestamp.text(of: Phones.now))",
          "failed_attempts": 0,
          "format": "virtual-device/1",
          "name": "phone",
          "product_type": "iPhone15,2",
          "product_version": "18.1",
          "revision": 1,
          "serial": "\(record.serialNumber)",
          "syncing": false,
          "udid": "\(record.udid)"
        }

        """)
  }

  @Test("Unknown members of a record are kept")
  func unknownMembers() throws {
    let phones = try Phones()
    let device = try phones.create()
    let extendedText = try recordText(device).replacing(
      "\"revision\"", with: "\"colour\": {\"case\": [1, 2.5]},\n  \"revision\"")
    try device.write(Array(extendedText.utf8), to: .record)
    let session = try device.openSession()
    try session.recordBackup(at: Phones.now)
    session.invalidate()
    let members = try JSONValue(parsing: try device.read(.record)).objectValue
    #expect(members?["colour"] == (try JSONValue(parsing: Array("{\"case\": [1, 2.5]}".utf8))))
    #expect(members?["last_backup"] == .string(Timestamp.text(of: Phones.now)))
  }

  @Test("A record of another format version is rejected")
  func otherFormat() throws {
    let phones = try Phones()
    let device = try phones.create()
    try device.write(
      Array(try recordText(device).replacing("virtual-device/1", with: "virtual-device/2").utf8), to: .record)
    #expect(try code { _ = try device.openSession() } == .unsupportedVersion)
    #expect(try code { _ = try device.summary(command: "test") } == .unsupportedVersion)
  }

  @Test(
    "A damaged record is rejected with the invalid member",
    arguments: [
      ("\"failed_attempts\": 0", "\"failed_attempts\": -1", "device.json.failed_attempts"),
      ("\"failed_attempts\": 0", "\"failed_attempts\": \"0\"", "device.json.failed_attempts"),
      ("\"syncing\": false", "\"syncing\": 0", "device.json.syncing"),
      ("\"udid\": \"", "\"udid\": \"x", "device.json.udid"),
      ("\"product_version\": \"18.1\"", "\"product_version\": \"x\"", "device.json.product_version"),
      ("\"revision\": 1", "\"revision\": 1.5", "device.json.revision"),
      ("\"apps\": []", "\"apps\": [{}]", "device.json.apps[0]"),
      ("\"apps\": []", "\"apps\": {}", "device.json.apps"),
      ("\"created\": \"", "\"created\": \"x", "device.json.created"),
      ("\"revision\": 1,", "", "device.json has no \"revision\""),
      ("{", "", "device.json"),
    ])
  func damaged(_ old: String, _ new: String, _ path: String) throws {
    let phones = try Phones()
    let device = try phones.create()
    let original = try recordText(device)
    let changedText = original.replacing(old, with: new, maxReplacements: 1)
    try #require(changedText != original)
    try device.write(Array(changedText.utf8), to: .record)
    let error = #expect(throws: KeyhaulError.self) { _ = try device.openSession() }
    #expect(error?.code == .deviceDamaged)
    #expect(error?.reason.hasPrefix(path) == true, "\(error?.reason ?? "")")
  }
}

@Suite("Damaged devices")
struct DamagedDeviceTests {
  @Test("A missing file is reported with its name", arguments: [DeviceFile.record, .hardware, .keybag, .keychain])
  func missing(_ file: DeviceFile) throws {
    let phones = try Phones()
    let device = try phones.create()
    try FileManager.default.removeItem(atPath: file.path(in: device.directory))
    let error = #expect(throws: KeyhaulError.self) { _ = try device.openSession().itemCount }
    #expect(error?.code == .deviceDamaged)
    #expect(error?.category == .damaged)
    #expect(error?.reason.contains(file.rawValue) == true)
  }

  @Test("A link or a pipe in place of a file is rejected", arguments: [DeviceFile.record, .hardware, .keybag, .memory])
  func unusualFiles(_ file: DeviceFile) throws {
    let phones = try Phones()
    let device = try phones.create()
    let path = file.path(in: device.directory)
    try FileManager.default.moveItem(atPath: path, toPath: path + ".moved")
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: path + ".moved")
    #expect(try code { _ = try device.openSession() } == .deviceDamaged)
    try FileManager.default.removeItem(atPath: path)
    #expect(mkfifo(path, 0o600) == 0)
    #expect(try code { _ = try device.openSession() } == .deviceDamaged)
  }

  @Test("A hardware UID of another length is rejected", arguments: [0, 31, 33])
  func hardwareLength(_ length: Int) throws {
    let phones = try Phones()
    let device = try phones.create()
    try device.write([UInt8](repeating: 7, count: length), to: .hardware)
    #expect(try code { _ = try device.openSession() } == .deviceDamaged)
  }

  @Test("A keybag with a flipped bit does not match its signature")
  func keybagBits() throws {
    let phones = try Phones()
    let device = try phones.create()
    let keybag = try device.read(.keybag)
    // Every seventh byte, for a shorter test.
    for index in stride(from: 0, to: keybag.count, by: 7) {
      var damagedKeybag = keybag
      damagedKeybag[index] ^= 0x10
      try device.write(damagedKeybag, to: .keybag)
      #expect(try code { _ = try device.openSession() } == .deviceDamaged, "byte \(index)")
    }
  }

  @Test("A damaged keychain prevents the removal of the passcode before any change, but not an erase")
  func damagedKeychain() throws {
    let phones = try Phones()
    let device = try phones.create()
    try device.write(Array("not a database".utf8), to: .keychain)
    let keybag = try device.read(.keybag)
    let error = #expect(throws: KeyhaulError.self) { try device.openSession().removePasscode(Secret(utf8: "1234")) }
    #expect(error?.category == .damaged)
    #expect(try device.read(.keybag) == keybag)
    #expect(try device.openSession(.reading).isPasscodeSet)

    try device.openSession().erase()
    #expect(try device.openSession().itemCount == 0)
  }

  @Test("A file at its size limit is read, and one byte more is rejected")
  func sizes() throws {
    let phones = try Phones()
    try FileManager.default.createDirectory(atPath: phones.home.path, withIntermediateDirectories: true)
    try Data(count: 100).write(to: URL(fileURLWithPath: phones.path("file")))
    #expect(try DeviceFiles().read(phones.path("file"), atMost: 100)?.count == 100)
    #expect(try code { _ = try DeviceFiles().read(phones.path("file"), atMost: 99) } == .deviceDamaged)
  }
}

@Suite("Device revisions")
struct RevisionTests {
  @Test("The revision increases with changes of items, with the passcode and with an erase, and with nothing else")
  func rules() throws {
    let phones = try Phones()
    let device = try phones.create()
    let session = try device.openSession()
    func increases(_ body: () throws -> Void) throws -> Bool {
      let revisionBefore = session.record.revisionCounter
      try body()
      #expect(session.record.revision == "r\(session.record.revisionCounter)")
      return session.record.revisionCounter > revisionBefore
    }
    #expect(try increases { try session.add("a", .always) })
    #expect(try increases { try session.update(.init(), with: .init(attributes: [.label: .string("x")])) })
    #expect(try increases { try session.delete(.init()) })
    #expect(try increases { try session.changePasscode(from: Secret(utf8: "1234"), to: Secret(utf8: "1")) })
    #expect(try !increases { try session.lock() })
    #expect(try !increases { try session.unlock("1") })
    #expect(try !increases { _ = try code { try session.unlock("2") } })
    #expect(try !increases { try session.restart() })
    #expect(try !increases { try session.unlock("1") })
    #expect(try !increases { _ = try session.find(.init()) })
    #expect(try !increases { try session.recordBackup(at: Phones.now) })
    #expect(try increases { try session.removePasscode(Secret(utf8: "1")) })
    #expect(try increases { try session.setPasscode(Secret(utf8: "1")) })
    #expect(try increases { try session.erase() })
    let lastRevision = session.record.revisionCounter
    session.invalidate()
    #expect(try storedRevision(device) == .integer(lastRevision))
  }

  private func storedRevision(_ device: VirtualDevice) throws -> JSONValue? {
    try JSONValue(parsing: device.read(.record)).objectValue?["revision"]
  }

  @Test("The stored revision changes with the first change of a session and is final at its end")
  func severalChanges() throws {
    let phones = try Phones()
    let device = try phones.create()
    let session = try device.openSession()
    try session.add("a", .always)
    #expect(try storedRevision(device) == .integer(2))
    try session.add("b", .always)
    #expect(session.record.revision == "r3")
    #expect(try storedRevision(device) != .integer(1))
    session.invalidate()
    #expect(try storedRevision(device) == .integer(3))
  }

  @Test("The revision is stored before items change")
  func storedBeforeItems() throws {
    let phones = try Phones()
    let device = try phones.create()
    let session = try device.openSession()
    let store = try session.prepareItemChanges()
    #expect(try storedRevision(device) == .integer(2))
    #expect(try store.count(of: .genericPassword) == 0)
  }
}

@Suite("Access groups of apps")
struct AppTests {
  private let phones: Phones
  private let session: DeviceSession

  init() throws {
    phones = try Phones()
    let apps = [
      DeviceApp(name: "chat", accessGroups: ["A.chat", "A.shared"]), DeviceApp(name: "bank", accessGroups: ["B"]),
    ]
    session = try phones.create("phone", DeviceOptions(apps: apps)).openSession()
  }

  private func item(_ group: String? = nil) -> KeychainItem {
    var item = KeychainItem(kind: .genericPassword)
    item[.account] = .string("x")
    item[.accessGroup] = group.map { .string($0) }
    return item
  }

  @Test("An app adds items only to its own groups, by default to the first one")
  func groups() throws {
    #expect(try session.add(item(), as: "chat").item.accessGroup == "A.chat")
    #expect(try session.add(item("A.shared"), as: "chat").item.accessGroup == "A.shared")
    #expect(try code { try session.add(item("B"), as: "chat") } == .notEntitled)
    #expect(try code { try session.add(item(), as: "mail") } == .notEntitled)
    #expect(try session.add(item()).item.accessGroup == "keyhaul")
  }

  @Test("An app finds, updates and deletes only items of its own groups")
  func ownItems() throws {
    try session.add(item("A.shared"))
    try session.add(item("B"))
    #expect(try session.find(.init(), as: "chat").items.map(\.item.accessGroup) == ["A.shared"])
    #expect(try session.find(.init(accessGroups: .only(["B"])), as: "chat").items.isEmpty)
    #expect(try session.update(.init(), with: .init(attributes: [.label: .string("y")]), as: "bank") == 1)
    #expect(
      try code { try session.update(.init(), with: .init(attributes: [.accessGroup: .string("B")]), as: "chat") }
        == .notEntitled)
    #expect(try session.delete(.init(), as: "bank") == 1)
    #expect(try session.find(.init()).items.map(\.item.accessGroup) == ["A.shared"])
  }
}

@Suite("Deletions on syncing devices")
struct SyncingTests {
  @Test("Deleting a synchronized item leaves a tombstone only if iCloud Keychain is on", arguments: [true, false])
  func tombstones(_ isSyncing: Bool) throws {
    let phones = try Phones()
    let session = try phones.create("phone", DeviceOptions(isSyncing: isSyncing)).openSession()
    var item = KeychainItem(kind: .genericPassword)
    item[.synchronizable] = .integer(1)
    try session.add(item)
    #expect(session.record.isSyncing == isSyncing)
    #expect(try session.delete(ItemQuery()) == 1)
    #expect(try session.itemCount == 0)
    #expect(try session.keychain.rowSummaries(includingTombstones: true).count == (isSyncing ? 1 : 0))
  }
}

@Suite("Texts of device errors")
struct ErrorTextTests {
  @Test("Every error has a summary and advice in the program's style", arguments: KeyhaulError.Code.deviceCodes)
  func texts(_ code: KeyhaulError.Code) {
    let error = KeyhaulError(code, "phone", "a fact")
    for text in [error.summary, error.advice] {
      #expect(!text.isEmpty)
      #expect(text.utf8.count <= 100)
      #expect(!text.hasSuffix(".") && !text.contains("please"))
    }
    #expect(error.summary.first?.isUppercase == false)
    #expect(error.description == "\(error.summary): a fact")
  }

  @Test("Errors have the categories that determine their exit codes")
  func categories() {
    let expected: [KeyhaulError.Code: ErrorCategory] = [
      .deviceNotFound: .notFound, .deviceBusy: .busy, .wrongPasscode: .wrongPassword, .locked: .locked,
      .deviceDamaged: .damaged,
      .unsupportedVersion: .refused, .badName: .usage, .deviceIO: .failed, .erased: .failed,
    ]
    for (code, category) in expected { #expect(KeyhaulError(code, "phone", "a fact").category == category) }
  }

  @Test("An error of a lower layer keeps its category, texts and advice, and gets the device's name")
  func underlying() {
    let stopped = DataProtectionError(.cancelled, "it was stopped after 5 iterations")
    let error = KeyhaulError(stopped).with(subject: "phone")
    #expect(error.code == .underlying && error.subject == "phone")
    #expect(error.meaning == stopped.meaning)
    #expect(error.reason == stopped.reason)
    #expect(error.underlying as? DataProtectionError == stopped)
    #expect(KeyhaulError(error as any ExplainedError) == error)
  }
}
