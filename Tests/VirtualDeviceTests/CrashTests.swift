import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import Keychains
import SystemPackage
import TestSupport
import Testing

@testable import VirtualDevice

/// Interrupts a change at each step, as if the process was killed, and examines the state that the next session finds.
@Suite("Devices after a crash")
struct CrashTests {
  enum Change: String, CaseIterable, CustomTestStringConvertible {
    case lock, unlock, restart, setPasscode, changePasscode, removePasscode, erase, add, wrongTwice
    var testDescription: String { rawValue }

    var startsLocked: Bool { self == .unlock || self == .wrongTwice }
    var startsWithPasscode: Bool { self != .setPasscode }

    func run(_ session: DeviceSession) throws {
      switch self {
      case .lock: try session.lock()
      case .unlock: try session.unlock("1234")
      case .restart: try session.restart()
      case .setPasscode: try session.setPasscode(Secret(utf8: "5678"))
      case .changePasscode: try session.changePasscode(from: Secret(utf8: "1234"), to: Secret(utf8: "5678"))
      case .removePasscode: try session.removePasscode(Secret(utf8: "1234"))
      case .erase: try session.erase()
      case .add: try session.add("new", .always)
      case .wrongTwice:
        for _ in 1...2 { _ = try code { try session.unlock("x") } }
      }
    }
  }

  /// The visible state of a device, except the number of failed attempts.
  struct Snapshot: Equatable {
    let state: DeviceState
    let keybag: [UInt8]
    let keys: [UInt32: [UInt8]]
    let rows: [RowReference]
    let items: [String]
    let udid: String
    let record: DeviceRecord

    /// The counters of attempts and revisions have rules of their own.
    static func == (left: Self, right: Self) -> Bool {
      left.state == right.state && left.keybag == right.keybag && left.keys == right.keys && left.rows == right.rows
        && left.items == right.items && left.udid == right.udid
    }

    init(_ device: VirtualDevice) throws {
      let session = try device.openSession()
      defer { session.invalidate() }
      state = session.state
      keybag = try device.read(.keybag)
      keys = session.rawKeys(1...12)
      let store = try session.keychain
      items = try store.rows(includingTombstones: true, keys: session.classKeys).map { row in
        let account = row.item?[.account]?.stringValue ?? "undecryptable"
        return "\(row.summary.protectionCode ?? "") \(account)"
      }
      rows = try store.rowSummaries(includingTombstones: true).map(\.reference)
      record = session.record
      udid = record.udid
    }
  }

  private let phones: Phones

  /// Creates the device that each attempt copies.
  private func prepare(_ change: Change) throws -> VirtualDevice {
    let device = try phones.create("start", passcode: change.startsWithPasscode ? "1234" : "")
    let session = try device.openSession()
    try session.add("plain", .whenUnlocked)
    try session.add("always", .always)
    if change.startsWithPasscode { try session.add("card", .whenPasscodeSetThisDeviceOnly) }
    if change == .wrongTwice { try session.setEraseAfterFailures(2) }
    if change.startsLocked { try session.lock() }
    return device
  }

  private func copy(_ device: VirtualDevice, _ name: String) throws -> VirtualDevice {
    try FileManager.default.copyItem(atPath: device.directory, toPath: phones.path(name))
    return try phones.home.device(DeviceName(name))
  }

  init() throws { phones = try Phones() }

  @Test("After a crash at any step, a device has its old or its new state", arguments: Change.allCases)
  func everyStep(_ change: Change) throws {
    let start = try prepare(change)
    let old = try Snapshot(start)
    let finished = try copy(start, "finished")
    try change.run(try finished.using(DeviceFiles()).openSession())
    let new = try Snapshot(finished)
    #expect(old != new)

    var sawOld = false
    var sawNew = false
    for limit in 0..<200 {
      let device = try copy(start, "cut-\(limit)")
      let faults = Faults(after: limit)
      try kill(device, faults, change)
      if !faults.didFail { break }

      let found = try Snapshot(device)
      #expect(found == old || found == new, "cut off at step \(limit)")
      sawOld = sawOld || found == old
      sawNew = sawNew || found == new
      let revision = found.record.revisionCounter
      #expect([old.record.revisionCounter, new.record.revisionCounter].contains(revision))
      if found.rows != old.rows || found.keybag != old.keybag { #expect(revision > old.record.revisionCounter) }
      #expect(try leftovers(device).isEmpty, "cut off at step \(limit)")
    }
    #expect(sawOld)
    #expect(sawNew || [.lock, .restart, .add].contains(change))
  }

  @Test(
    "After a second crash during recovery, a device has its new state (a third of the steps in a quick run)",
    arguments: [Change.removePasscode, .erase, .changePasscode])
  func killedTwice(_ change: Change) throws {
    let start = try prepare(change)
    let old = try Snapshot(start)
    let finished = try copy(start, "finished")
    try change.run(try finished.using(DeviceFiles()).openSession())
    let new = try Snapshot(finished)

    var committed = 0
    for first in 0..<200 {
      let cut = try copy(start, "cut-\(first)")
      let faults = Faults(after: first)
      try kill(cut, faults, change)
      if !faults.didFail { break }
      guard cut.has(.change) else { continue }
      committed += 1
      let seconds = Cases.isExhaustive ? stride(from: 0, to: 50, by: 1) : stride(from: first % 3, to: 50, by: 3)
      for second in seconds {
        let device = try copy(cut, "cut-\(first)-\(second)")
        let secondFaults = Faults(after: second)
        let errorCode = try code { try device.using(secondFaults.files).openSession().invalidate() }
        #expect((errorCode != nil) == secondFaults.didFail)
        #expect(try Snapshot(device) == new, "cut off at steps \(first) and \(second)")
        if !secondFaults.didFail { break }
      }
    }
    #expect(committed > 3)
    #expect(old != new)
  }

  @Test("After a crash during its creation, a device is complete or does not exist")
  func creation() throws {
    var completeCount = 0
    for limit in 0..<100 {
      let phones = try Phones()
      let faults = Faults(after: limit)
      var environment = phones.home.environment
      environment.files = faults.files
      let home = DeviceSet(path: phones.home.path, environment: environment)
      _ = try? home.create(DeviceName("phone"), passcode: Secret(utf8: "1234")) {
        (session) throws(KeyhaulError) in
        _ = try session.add(KeychainItem(kind: .genericPassword))
      }
      if try phones.home.devices().isEmpty {
        _ = try phones.create()
      } else {
        completeCount += 1
        #expect(try phones.home.devices()[0].openSession().itemCount == 1)
      }
      #expect(try FileManager.default.contentsOfDirectory(atPath: phones.home.path) == ["phone"])
      if !faults.didFail { break }
    }
    #expect(completeCount >= 1)
  }

  @Test("After a crash during its deletion, a device is complete or does not exist, and its name can be used again")
  func deletion() throws {
    for limit in 0..<100 {
      let phones = try Phones()
      _ = try phones.create()
      let faults = Faults(after: limit)
      var environment = phones.home.environment
      environment.files = faults.files
      try? DeviceSet(path: phones.home.path, environment: environment).delete(DeviceName("phone"))
      if let device = try phones.home.devices().first {
        #expect(try device.openSession().state == .unlocked)
        try phones.home.delete(DeviceName("phone"))
      }
      _ = try phones.create()
      #expect(try FileManager.default.contentsOfDirectory(atPath: phones.home.path) == ["phone"])
      if !faults.didFail { break }
    }
  }

  @Test(
    "A full disk is reported with its reason, and the device stays as it was",
    arguments: [Errno.noSpace, .diskQuotaExceeded, .readOnlyFileSystem])
  func fullDisk(_ reason: Errno) throws {
    let device = try prepare(.changePasscode)
    let before = try Snapshot(device)
    let error = #expect(throws: KeyhaulError.self) {
      try Change.changePasscode.run(try device.using(Faults(after: 8, reason).files).openSession())
    }
    #expect(error?.code == .deviceIO)
    #expect(error?.errno == reason)
    #expect(try Snapshot(device) == before)
  }

  @Test("A reader completes an interrupted change before it reads")
  func reader() throws {
    let start = try prepare(.erase)
    for limit in 0..<200 {
      let device = try copy(start, "cut-\(limit)")
      let faults = Faults(after: limit)
      try kill(device, faults, .erase)
      guard device.has(.change) else {
        if !faults.didFail { break }
        continue
      }
      let session = try device.openSession(.reading)
      #expect(try session.itemCount == 0)
      #expect(!session.isPasscodeSet)
      #expect(!device.has(.change))
    }
  }

  @Test(
    "An invalid list of changes is not applied",
    arguments: [
      "{}", "x", #"{"format":"device-change/1","replace":["../x"],"keychain":"keep"}"#,
      #"{"format":"device-change/1","replace":["hardware.uid"],"keychain":"keep"}"#,
      #"{"format":"device-change/1","replace":["keychain-2.db"],"keychain":"keep"}"#,
      #"{"format":"device-change/1","replace":[],"keychain":"burn"}"#,
      #"{"format":"device-change/2","replace":[],"keychain":"empty"}"#,
      #"{"format":"device-change/1","replace":[],"keychain":"empty","remove":["lock"]}"#,
    ])
  func invalidChange(_ text: String) throws {
    let device = try phones.create()
    try device.write(Array(text.utf8), to: .change)
    #expect(try code { _ = try device.openSession() } == .deviceDamaged)
    #expect(device.has(.hardware))
  }

  // MARK: Helpers

  /// Runs a change in a simulated process that dies at the first fault.
  private func kill(_ device: VirtualDevice, _ faults: Faults, _ change: Change) throws {
    do {
      let session = try device.using(faults.files).openSession()
      defer { session.invalidate() }
      try change.run(session)
    } catch is KeyhaulError {
      return
    }
  }

  private func leftovers(_ device: VirtualDevice) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: device.directory).filter { name in
      name.hasSuffix(".next") || name == "change"
    }
  }
}

extension DeviceSession {
  func setEraseAfterFailures(_ limit: Int) throws {
    var changed = record
    changed.eraseAfterFailures = limit
    try store(changed)
  }
}
