import Backups
import Foundation
import KeychainCrypto
import KeychainFormats
import Synchronization
import TestSupport
import Testing
import VirtualDevice

@testable import KeyhaulKit

/// A clock that stands still, until after a number of looks at it an hour has passed.
private final class LateClock: Sendable {
  private let looksLeft = Mutex<Int?>(nil)

  func jump(afterLooks count: Int) { looksLeft.withLock { $0 = count } }

  var deviceClock: DeviceClock {
    DeviceClock(
      now: {
        let isLate = self.looksLeft.withLock { looks in
          guard let left = looks else { return false }
          looks = max(0, left - 1)
          return left == 0
        }
        let hour = isLate ? 3600.0 : 0
        return KeychainDate(secondsSinceReferenceDate: Desk.now.secondsSinceReferenceDate + hour)
      },
      sleep: { _ in })
  }
}

@Suite("A phone that is not ready")
struct NotReady {
  private struct Locked {
    let desk: Desk
    let phone: VirtualDevice
    let path: String

    init() throws {
      desk = try Desk(seed: "locked")
      phone = try desk.phone("phone", passcode: "1234")
      let session = try phone.held()
      try session.plant(.password("a"), .password("b"), .password("c", .afterFirstUnlock), .password("d", .always))
      session.invalidate()
      path = try desk.backUp(phone, password: Desk.password)
    }
  }

  @Test("a locked phone is not backed up: no half keychain", arguments: [true, false])
  func backup(afterRestart: Bool) throws {
    let locked = try Locked()
    let session = try locked.phone.held()
    if afterRestart { try session.restart() } else { try session.lock() }
    let error = try migrationError { _ = try BackupExporter.prepare(session, password: nil) }
    #expect(error?.code == .deviceLocked)
    #expect(error?.category == .locked)
    let rest = afterRestart ? ", and 1 more has another class" : ""
    #expect(error?.reason == "2 items are in the class \"when unlocked\"\(rest); their keys are not in memory")
    #expect(error?.meaning.remedy == .unlock(device: "phone"))
  }

  @Test("a phone whose keys go while its rows are read is not backed up: no half keychain", arguments: [0, 1])
  func locksMeanwhile(looksBefore: Int) throws {
    let clock = LateClock()
    let environment = DeviceEnvironment(
      clock: clock.deviceClock, random: SeededRandomSource(seed: "locks meanwhile"), passcodeRounds: 2)
    let home = try TemporaryDeviceSet(environment: environment)
    let session = try home.devices.create(DeviceName("phone"), passcode: Secret(utf8: "1234")).held()
    try session.plant(.password("a"), .password("c", .afterFirstUnlock))
    try session.requestLock()
    clock.jump(afterLooks: looksBefore)
    let error = try migrationError { _ = try BackupExporter.prepare(session, password: nil) }
    #expect(error?.code == .deviceLocked)
    #expect(error?.reason == "1 item is in the class \"when unlocked\"; its key is not in memory")
  }

  @Test("a locked phone without any item is not backed up either")
  func emptyBackup() throws {
    let desk = try Desk()
    let session = try desk.phone("phone", passcode: "1234").held()
    try session.lock()
    #expect(try migrationError { _ = try BackupExporter.prepare(session, password: nil) }?.code == .deviceLocked)
    try session.plant(.password("c", .afterFirstUnlock))
    #expect(try migrationError { _ = try BackupExporter.prepare(session, password: nil) }?.code == .deviceLocked)
  }

  @Test("a plan can be made for a locked phone, a restore cannot, and it changes nothing", arguments: [true, false])
  func restore(afterRestart: Bool) throws {
    let locked = try Locked()
    let session = try locked.phone.held()
    if afterRestart { try session.restart() } else { try session.lock() }
    let before = try HeldKeychain(session).image
    let archive = try locked.desk.open(locked.path, password: Desk.password, on: session)
    for policy in ExistingItemPolicy.allCases {
      let plan = try Restorer.plan(archive, onto: session, policy: policy)
      #expect(plan.decisions.allSatisfy { $0.outcome == .migrates(.identical) })
      #expect(try migrationError { try Restorer.restore(plan, onto: session) }?.code == .deviceLocked)
    }
    #expect(try HeldKeychain(session).image == before)

    // Made while it was locked, the plan holds once it is unlocked.
    let plan = try Restorer.plan(archive, onto: session, policy: .replace)
    try session.unlock(passcode: Secret(utf8: "1234"))
    let now = try Restorer.plan(archive, onto: session, policy: .replace)
    #expect(now.decisions == plan.decisions)
    #expect(now.removed == plan.removed)
    try Restorer.restore(plan, onto: session)
    #expect(try HeldKeychain(session).rows.count == before.count)
  }

  @Test(
    "a phone before iOS 10.2 writes another kind of backup",
    arguments: [
      ("4.3.5", false), ("10.1.1", false), ("10.2", true), ("18.1", true),
    ])
  func version(_ version: String, writes: Bool) throws {
    let desk = try Desk()
    let session = try desk.phone("phone", ios: version).held()
    let error = try migrationError { _ = try BackupExporter.prepare(session, password: nil) }
    #expect(error?.code == (writes ? nil : .unsupportedSystem))
    #expect(error?.category == (writes ? nil : .refused))
  }

  @Test("a password must have something in it, and rounds must be readable")
  func password() throws {
    let desk = try Desk()
    let session = try desk.phone("phone").held()
    for (password, rounds) in [("", 1), ("\0\0", 1), ("pw", 0), ("pw", 20_000_000)] {
      let error = try migrationError {
        _ = try BackupExporter.prepare(session, password: secret(password), rounds: rounds)
      }
      #expect(error?.category == .refused)
    }
  }

  @Test("where something stands at the destination it stays, and nothing is left")
  func destination() throws {
    let desk = try Desk()
    let phone = try desk.phone("phone")
    let path = try desk.backUp(phone, password: nil)
    let old = try Data(contentsOf: URL(fileURLWithPath: path))
    let prepared = try BackupExporter.prepare(try phone.held(), password: nil)
    let error = try migrationError { _ = try prepared.write(to: .file(path, .tar)) }
    #expect(error?.category == .usage)
    #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == old)
    #expect(try FileManager.default.contentsOfDirectory(atPath: desk.directory.path) == ["backup.tar"])
  }
}
