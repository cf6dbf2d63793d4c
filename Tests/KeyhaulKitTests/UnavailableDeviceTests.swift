import Backups
import Foundation
import KeychainCrypto
import KeychainFormats
import Synchronization
import TestSupport
import Testing
import VirtualDevice

@testable import KeyhaulKit

/// A fixed clock that jumps forward by an hour after it was read a number of times.
private final class JumpingClock: Sendable {
  private let readsBeforeJump = Mutex<Int?>(nil)

  func jump(afterReads count: Int) { readsBeforeJump.withLock { $0 = count } }

  var deviceClock: DeviceClock {
    DeviceClock(
      now: {
        let isLate = self.readsBeforeJump.withLock { remaining in
          guard let count = remaining else { return false }
          remaining = max(0, count - 1)
          return count == 0
        }
        let hour = isLate ? 3600.0 : 0
        return KeychainDate(secondsSinceReferenceDate: TestSetup.now.secondsSinceReferenceDate + hour)
      },
      sleep: { _ in })
  }
}

@Suite("Unavailable devices")
struct UnavailableDeviceTests {
  private struct BackedUpPhone {
    let setup: TestSetup
    let phone: VirtualDevice
    let path: String

    init() throws {
      setup = try TestSetup(seed: "locked")
      phone = try setup.phone("phone", passcode: "1234")
      let session = try phone.openTestSession()
      try session.insertUnchanged(
        .password("a"), .password("b"), .password("c", .afterFirstUnlock), .password("d", .always))
      session.invalidate()
      path = try setup.backUp(phone, password: TestSetup.password)
    }
  }

  @Test("A locked phone is not backed up", arguments: [true, false])
  func backup(afterRestart: Bool) throws {
    let fixture = try BackedUpPhone()
    let session = try fixture.phone.openTestSession()
    if afterRestart { try session.restart() } else { try session.lock() }
    let error = try keyhaulError { _ = try BackupExporter.prepare(session, password: nil) }
    #expect(error?.code == .deviceLocked)
    #expect(error?.category == .locked)
    let otherClassNote = afterRestart ? ", and 1 more has another class" : ""
    #expect(
      error?.reason == "2 items are in the class \"when unlocked\"\(otherClassNote); their keys are not in memory")
    #expect(error?.meaning.remedy == .unlock(device: "phone"))
  }

  @Test("A phone that loses its keys while rows are read is not backed up", arguments: [0, 1])
  func locksMeanwhile(clockReadCount: Int) throws {
    let clock = JumpingClock()
    let environment = DeviceEnvironment(
      clock: clock.deviceClock, random: SeededRandomSource(seed: "locks meanwhile"), passcodeRounds: 2)
    let home = try TemporaryDeviceSet(environment: environment)
    let session = try home.devices.create(DeviceName("phone"), passcode: Secret(utf8: "1234")).openTestSession()
    try session.insertUnchanged(.password("a"), .password("c", .afterFirstUnlock))
    try session.requestLock()
    clock.jump(afterReads: clockReadCount)
    let error = try keyhaulError { _ = try BackupExporter.prepare(session, password: nil) }
    #expect(error?.code == .deviceLocked)
    #expect(error?.reason == "1 item is in the class \"when unlocked\"; its key is not in memory")
  }

  @Test("A locked phone without items is not backed up")
  func emptyBackup() throws {
    let setup = try TestSetup()
    let session = try setup.phone("phone", passcode: "1234").openTestSession()
    try session.lock()
    #expect(try keyhaulError { _ = try BackupExporter.prepare(session, password: nil) }?.code == .deviceLocked)
    try session.insertUnchanged(.password("c", .afterFirstUnlock))
    #expect(try keyhaulError { _ = try BackupExporter.prepare(session, password: nil) }?.code == .deviceLocked)
  }

  @Test(
    "A restore to a locked phone can be planned, but is refused until the phone is unlocked", arguments: [true, false])
  func restore(afterRestart: Bool) throws {
    let fixture = try BackedUpPhone()
    let session = try fixture.phone.openTestSession()
    if afterRestart { try session.restart() } else { try session.lock() }
    let before = try KeychainSnapshot(session).columnsOfRows
    let decryptedBackup = try fixture.setup.open(fixture.path, password: TestSetup.password, on: session)
    for policy in ExistingItemPolicy.allCases {
      let plan = try Restorer.plan(decryptedBackup, onto: session, policy: policy)
      #expect(plan.decisions.allSatisfy { $0.outcome == .migrates(.identical) })
      #expect(try keyhaulError { try Restorer.restore(plan, onto: session) }?.code == .deviceLocked)
    }
    #expect(try KeychainSnapshot(session).columnsOfRows == before)

    // A plan that was made while the phone was locked is still valid after it is unlocked.
    let plan = try Restorer.plan(decryptedBackup, onto: session, policy: .replace)
    try session.unlock(passcode: Secret(utf8: "1234"))
    let newPlan = try Restorer.plan(decryptedBackup, onto: session, policy: .replace)
    #expect(newPlan.decisions == plan.decisions)
    #expect(newPlan.removed == plan.removed)
    try Restorer.restore(plan, onto: session)
    #expect(try KeychainSnapshot(session).rows.count == before.count)
  }

  @Test(
    "A phone with iOS before 10.2 is not backed up, because it writes a different format",
    arguments: [("4.3.5", false), ("10.1.1", false), ("10.2", true), ("18.1", true)])
  func version(_ version: String, isBackedUp: Bool) throws {
    let setup = try TestSetup()
    let session = try setup.phone("phone", ios: version).openTestSession()
    let error = try keyhaulError { _ = try BackupExporter.prepare(session, password: nil) }
    #expect(error?.code == (isBackedUp ? nil : .unsupportedSystem))
    #expect(error?.category == (isBackedUp ? nil : .refused))
  }

  @Test("An empty password and an invalid number of iterations are refused")
  func password() throws {
    let setup = try TestSetup()
    let session = try setup.phone("phone").openTestSession()
    // HMAC pads its key with NUL bytes, so a password of NUL bytes equals the empty one. 20,000,000 iterations
    // exceed the limit only together with the iterations of the second step.
    for (password, rounds) in [("", 1), ("\0\0", 1), ("pw", 0), ("pw", 20_000_000)] {
      let error = try keyhaulError {
        _ = try BackupExporter.prepare(session, password: secret(password), rounds: rounds)
      }
      #expect(error?.category == .refused)
    }
  }

  @Test("An existing destination is kept, and no temporary file is left")
  func destination() throws {
    let setup = try TestSetup()
    let phone = try setup.phone("phone")
    let path = try setup.backUp(phone, password: nil)
    let before = try Data(contentsOf: URL(fileURLWithPath: path))
    let prepared = try BackupExporter.prepare(try phone.openTestSession(), password: nil)
    let error = try keyhaulError { _ = try prepared.write(to: .file(path, .tar)) }
    #expect(error?.category == .usage)
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == before)
    #expect(try FileManager.default.contentsOfDirectory(atPath: setup.directory.path) == ["backup.tar"])
  }
}
