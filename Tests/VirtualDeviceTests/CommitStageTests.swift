import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import SystemPackage
import Testing

@testable import VirtualDevice

/// Errors before the commit of a change must leave the old state, and errors after it the new one. Each test compares
/// the error's stage with the state that the next session finds, for a failure at every step.
@Suite("Stages of errors in device changes")
struct CommitStageTests {
  private static let changes = CrashTests.Change.allCases.filter { $0 != .add && $0 != .wrongTwice }

  private let phones: Phones

  init() throws { phones = try Phones() }

  private func prepare(_ change: CrashTests.Change) throws -> VirtualDevice {
    let device = try phones.create("start", passcode: change.startsWithPasscode ? "1234" : "")
    try device.withSession(.writing, verb: "test") { (session) throws(KeyhaulError) in
      _ = try session.add(KeychainItem(kind: .genericPassword))
    }
    if change.startsLocked { try device.openSession().lock() }
    return device
  }

  private func copy(_ device: VirtualDevice, _ name: String) throws -> VirtualDevice {
    try FileManager.default.copyItem(atPath: device.directory, toPath: phones.path(name))
    return try phones.home.device(DeviceName(name))
  }

  /// Returns the error of the closure, or `nil` if there is none.
  private func error(_ body: () throws -> Void) throws -> KeyhaulError? {
    do {
      try body()
      return nil
    } catch let error as KeyhaulError {
      return error
    }
  }

  @Test("The error's stage is correct for a failure at every step of every change", arguments: changes)
  func everyStep(_ change: CrashTests.Change) throws {
    let original = try prepare(change)
    let oldState = try CrashTests.Snapshot(original)
    let changedDevice = try copy(original, "changed")
    try change.run(try changedDevice.using(DeviceFiles()).openSession())
    let newState = try CrashTests.Snapshot(changedDevice)
    var stages: Set<CommitStage> = []
    for stepLimit in 0..<200 {
      let device = try copy(original, "failed-\(stepLimit)")
      let faults = Faults(after: stepLimit, .noSpace)
      let error = try error {
        let session = try device.using(faults.files).openSession()
        defer { session.invalidate() }
        try change.run(session)
      }
      guard let error else { break }
      let state = try CrashTests.Snapshot(device)
      #expect(state == (error.stage == .afterCommit ? newState : oldState), "step \(stepLimit): \(error)")
      stages.insert(error.stage)
    }
    #expect(stages == [.beforeCommit, .afterCommit])
  }

  /// Each new file is synced, then the folder with their names, and only then the list that refers to them is renamed.
  @Test(
    "The names of new files are synced before the list that refers to them",
    arguments: [CrashTests.Change.setPasscode, .erase])
  func order(_ change: CrashTests.Change) throws {
    let device = try prepare(change)
    let calls = Locked<[FileSystem.Call]>([])
    let files = DeviceFiles(
      FileSystem { call in
        calls.withLock { $0.append(call) }
        return nil
      })
    let session = try device.using(files).openSession()
    defer { session.invalidate() }
    calls.withLock { $0 = [] }
    try change.run(session)
    let callsOfChange = calls.withLock { $0 }
    let firstRename = try #require(callsOfChange.firstIndex(of: .rename), "\(callsOfChange)")
    let callsBefore = callsOfChange[..<firstRename]
    let createdCount = callsBefore.count { $0 == .create }
    let syncedFolderCount = 1
    #expect(createdCount >= 1, "\(callsOfChange)")
    #expect(callsBefore.count { $0 == .sync } == createdCount + syncedFolderCount, "\(callsOfChange)")
    #expect(callsOfChange[firstRename...].contains(.sync), "\(callsOfChange)")
  }

  @Test("The error's stage is correct for a failure at every step of creating a device")
  func creation() throws {
    var stages: Set<CommitStage> = []
    for stepLimit in 0..<100 {
      let phones = try Phones()
      var environment = phones.home.environment
      environment.files = Faults(after: stepLimit).files
      let home = DeviceSet(path: phones.home.path, environment: environment)
      let error = try error {
        _ = try home.create(DeviceName("phone"), passcode: Secret(utf8: "1234")) {
          (session) throws(KeyhaulError) in
          for account in ["a", "b"] {
            _ = try session.add(KeychainItem(kind: .genericPassword, attributes: [.account: .string(account)]))
          }
        }
      }
      guard let error else { break }
      #expect(try phones.home.devices().isEmpty == (error.stage == .beforeCommit), "step \(stepLimit): \(error)")
      stages.insert(error.stage)
    }
    #expect(stages == [.beforeCommit, .afterCommit])
  }

  @Test("The error's stage is correct for a failure at every step of deleting a device, and names the leftovers")
  func deletion() throws {
    var stages: Set<CommitStage> = []
    for stepLimit in 0..<100 {
      let phones = try Phones()
      _ = try phones.create()
      var environment = phones.home.environment
      environment.files = Faults(after: stepLimit).files
      let error = try error {
        try DeviceSet(path: phones.home.path, environment: environment).delete(DeviceName("phone"))
      }
      guard let error else { break }
      #expect(try phones.home.devices().isEmpty == (error.stage == .afterCommit), "step \(stepLimit): \(error)")
      let hasLeftovers = try FileManager.default.contentsOfDirectory(atPath: phones.home.path) == [".phone.tmp"]
      #expect(error.reason.contains("/.phone.tmp") == (error.stage == .afterCommit && hasLeftovers), "\(error)")
      stages.insert(error.stage)
    }
    #expect(stages == [.beforeCommit, .afterCommit])
  }

  @Test("The error's stage is correct while adding items, because a new revision alone is not a change")
  func items() throws {
    let original = try prepare(.lock)
    var stages: [CommitStage] = []
    for stepLimit in 0..<100 {
      let device = try copy(original, "cut-\(stepLimit)")
      let session = try device.using(Faults(after: stepLimit).files).openSession()
      let error = try error {
        defer { session.invalidate() }
        for account in ["a", "b"] { try session.add(account, .always) }
        try session.close()
      }
      guard let error else { break }
      // The device has one item at the start.
      #expect(
        try device.openSession().itemCount == (error.stage == .afterCommit ? 3 : 1), "step \(stepLimit): \(error)")
      stages.append(error.stage)
    }
    // The record is written twice, each time in five steps. The second write comes after both items.
    #expect(stages == Array(repeating: .beforeCommit, count: 5) + Array(repeating: .afterCommit, count: 5))
  }

  @Test("If the last wrong passcode erases the device, the error reports that even if a later step fails")
  func erased() throws {
    let device = try phones.create("start", passcode: "1234")
    try device.openSession().setEraseAfterFailures(1)
    var codes: Set<KeyhaulError.Code> = []
    for stepLimit in 0..<100 {
      let copy = try copy(device, "failed-\(stepLimit)")
      let faults = Faults(after: stepLimit)
      let thrownError = try error { try copy.using(faults.files).openSession().unlock("x") }
      let error = try #require(thrownError)
      #expect(error.stage == .beforeCommit)
      let isErased = try !copy.openSession().isPasscodeSet
      #expect((error.code == .erased) == isErased, "step \(stepLimit): \(error)")
      codes.insert(error.code)
      if !faults.didFail { break }
    }
    #expect(codes == [.deviceIO, .erased])
  }
}
