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

  /// The visible state of a device.
  struct Snapshot: Equatable {
    let state: DeviceState
    let keybag: [UInt8]
    let keys: [UInt32: [UInt8]]
    let rows: [RowReference]
    let items: [String]
    let udid: String
    let record: DeviceRecord

    /// Compares everything except the record, because its counters of attempts and revisions may differ.
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
    let original = try prepare(change)
    let (oldState, newState) = try states(of: original, change)

    var occurredStates: [Snapshot] = []
    for stepLimit in 0..<200 {
      let device = try copy(original, "interrupted-\(stepLimit)")
      let faults = Faults(after: stepLimit)
      try interrupt(change, on: device, faults)
      if !faults.didFail { break }

      let state = try Snapshot(device)
      #expect(state == oldState || state == newState, "interrupted at step \(stepLimit)")
      occurredStates.append(state)
      let (revision, oldRevision) = (state.record.revisionCounter, oldState.record.revisionCounter)
      #expect([oldRevision, newState.record.revisionCounter].contains(revision))
      if state.rows != oldState.rows || state.keybag != oldState.keybag { #expect(revision > oldRevision) }
      #expect(try leftovers(device).isEmpty, "interrupted at step \(stepLimit)")
    }
    #expect(occurredStates.contains(oldState))
    // The commit is the last step of these three changes.
    #expect(occurredStates.contains(newState) || [.lock, .restart, .add].contains(change))
  }

  /// Returns the states of a device before and after a change, which is made on a copy.
  private func states(of device: VirtualDevice, _ change: Change) throws -> (old: Snapshot, new: Snapshot) {
    let oldState = try Snapshot(device)
    let changedDevice = try copy(device, "changed")
    try change.run(try changedDevice.using(DeviceFiles()).openSession())
    let newState = try Snapshot(changedDevice)
    #expect(oldState != newState)
    return (oldState, newState)
  }

  @Test(
    "After a second crash during recovery, a device has its new state (a third of the steps in a quick run)",
    arguments: [Change.removePasscode, .erase, .changePasscode])
  func interruptedTwice(_ change: Change) throws {
    let original = try prepare(change)
    let newState = try states(of: original, change).new

    var committedCount = 0
    for stepLimit in 0..<200 {
      let interrupted = try copy(original, "interrupted-\(stepLimit)")
      let faults = Faults(after: stepLimit)
      try interrupt(change, on: interrupted, faults)
      if !faults.didFail { break }
      guard interrupted.has(.change) else { continue }
      committedCount += 1
      let recoveryLimits =
        Cases.isExhaustive ? stride(from: 0, to: 50, by: 1) : stride(from: stepLimit % 3, to: 50, by: 3)
      for recoveryLimit in recoveryLimits {
        let device = try copy(interrupted, "interrupted-\(stepLimit)-\(recoveryLimit)")
        let recoveryFaults = Faults(after: recoveryLimit)
        let errorCode = try code { try device.using(recoveryFaults.files).openSession().invalidate() }
        #expect((errorCode != nil) == recoveryFaults.didFail)
        #expect(try Snapshot(device) == newState, "interrupted at steps \(stepLimit) and \(recoveryLimit)")
        if !recoveryFaults.didFail { break }
      }
    }
    #expect(committedCount > 3)
  }

  @Test("After a crash during its creation, a device is complete or does not exist")
  func creation() throws {
    var completeCount = 0
    for stepLimit in 0..<100 {
      let phones = try Phones()
      let faults = Faults(after: stepLimit)
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
    for stepLimit in 0..<100 {
      let phones = try Phones()
      _ = try phones.create()
      let faults = Faults(after: stepLimit)
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
    let snapshotBefore = try Snapshot(device)
    let error = #expect(throws: KeyhaulError.self) {
      // The steps from the ninth fail. The change is committed later.
      try Change.changePasscode.run(try device.using(Faults(after: 8, reason).files).openSession())
    }
    #expect(error?.code == .deviceIO)
    #expect(error?.errno == reason)
    #expect(try Snapshot(device) == snapshotBefore)
  }

  @Test("A reader completes an interrupted change before it reads")
  func reader() throws {
    let original = try prepare(.erase)
    for stepLimit in 0..<200 {
      let device = try copy(original, "interrupted-\(stepLimit)")
      let faults = Faults(after: stepLimit)
      try interrupt(.erase, on: device, faults)
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
  private func interrupt(_ change: Change, on device: VirtualDevice, _ faults: Faults) throws {
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
    var changedRecord = record
    changedRecord.eraseAfterFailures = limit
    try store(changedRecord)
  }
}
