import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Keychains
import TestSupport
import Testing

@testable import VirtualDevice

@Suite("Concurrent access to a device")
struct BusyTests {
  /// A clock that advances while a caller sleeps, and runs a closure at each sleep.
  private final class SimulatedClock: Sendable {
    /// The total duration of all sleeps.
    let slept = Locked<Duration>(.zero)
    let onSleep: @Sendable () -> Void

    init(onSleep: @escaping @Sendable () -> Void = {}) { self.onSleep = onSleep }

    var deviceClock: DeviceClock {
      DeviceClock(
        now: {
          let seconds = self.slept.withLock { Double($0.components.seconds) }
          return KeychainDate(secondsSinceReferenceDate: Phones.now.secondsSinceReferenceDate + seconds)
        },
        sleep: { duration in
          self.slept.withLock { $0 += duration }
          self.onSleep()
        })
    }
  }

  /// Returns the device with a simulated clock.
  private func device(_ device: VirtualDevice, with clock: SimulatedClock) -> VirtualDevice {
    var environment = device.environment
    environment.clock = clock.deviceClock
    return VirtualDevice(name: device.name, directory: device.directory, environment: environment)
  }

  @Test("The error for a busy device names the holder, its command and the time")
  func busy() throws {
    let phones = try Phones()
    let device = try phones.create()
    let session = try device.openSession(.writing, verb: "keyhaul restore")
    defer { session.invalidate() }
    let waitingDevice = self.device(device, with: SimulatedClock())
    let error = #expect(throws: KeyhaulError.self) {
      _ = try waitingDevice.openSession(.writing, verb: "keyhaul backup", wait: .seconds(3))
    }
    #expect(error?.code == .deviceBusy)
    #expect(error?.category == .busy)
    #expect(error?.subject == "phone")
    #expect(error?.reason == "process \(getpid()) (keyhaul restore) has used it for 3 s")
  }

  @Test("Readers share a device, and a writer has exclusive access")
  func sharing() throws {
    let phones = try Phones()
    let device = try phones.create()
    let (firstReader, secondReader) = (try device.openSession(.reading), try device.openSession(.reading))
    #expect(try code { _ = try device.openSession(.writing) } == .deviceBusy)
    firstReader.invalidate()
    #expect(try code { _ = try device.openSession(.writing) } == .deviceBusy)
    secondReader.invalidate()
    let writer = try device.openSession(.writing)
    #expect(try code { _ = try device.openSession(.reading) } == .deviceBusy)
    writer.invalidate()
    #expect(try code { _ = try device.openSession(.writing) } == nil)
  }

  @Test("A waiting process gets the device as soon as it is free")
  func waiting() throws {
    let phones = try Phones()
    let device = try phones.create()
    let holder = SharedSession(try device.openSession())
    let clock = SimulatedClock(onSleep: { holder.invalidate() })
    let session = try self.device(device, with: clock).openSession(.writing, verb: "test", wait: .seconds(30))
    #expect(session.state == .unlocked)
    #expect(clock.slept.withLock { $0 } < .seconds(30))
  }

  @Test("A device that is deleted while another process waits for it is not found")
  func deletedDuringWait() throws {
    let phones = try Phones()
    let device = try phones.create()
    let holder = SharedSession(try device.openSession())
    let home = phones.home
    let clock = SimulatedClock(onSleep: {
      holder.invalidate()
      try? home.delete(device.name)
    })
    #expect(
      try code { _ = try self.device(device, with: clock).openSession(.writing, verb: "x", wait: .seconds(1)) }
        == .deviceNotFound
    )
  }

  @Test("A session that has ended makes no changes and has no keys")
  func ended() throws {
    let phones = try Phones()
    let device = try phones.create()
    let session = try device.openSession()
    session.invalidate()
    #expect(try code { try session.lock() } == .deviceNotWritable)
    #expect(try code { _ = try session.itemCount } == .deviceNotWritable)
    #expect(session.rawKeys(1...12).isEmpty)
  }

  @Test("Calls on the keychain of an ended session throw errors")
  func endedKeychain() throws {
    let phones = try Phones()
    let device = try phones.create()
    let session = try device.openSession()
    try session.add("plain", .always)
    let store = try session.keychain
    session.invalidate()
    let readingSession = try device.openSession(.reading)
    #expect(throws: KeyhaulError.self) { try store.count(of: .key) }
    #expect(throws: KeyhaulError.self) { try store.find(ItemQuery(), keys: readingSession.classKeys) }
    #expect(throws: KeyhaulError.self) { try store.rows(includingTombstones: true, keys: readingSession.classKeys) }
    #expect(try code { _ = try session.find(ItemQuery()) } == .deviceNotWritable)
    #expect(try code { try session.add("other", .always) } == .deviceNotWritable)
    #expect(try code { _ = try session.update(.init(), with: .init()) } == .deviceNotWritable)
    #expect(try code { _ = try session.delete(.init()) } == .deviceNotWritable)
    let calls: [() throws -> Void] = [
      { try session.secItemAdd(["class": "genp"], by: SecItemCaller(accessGroups: ["a"])) },
      { _ = try session.secItemCopyMatching(["class": "genp"], by: SecItemCaller(accessGroups: ["a"])) },
    ]
    for call in calls {
      let error = #expect(throws: SecItemError.self) { try call() }
      #expect(error?.status == .notAvailable)
    }
  }

  @Test("After a session is closed, all of its changes are on the disk")
  func closed() throws {
    let phones = try Phones()
    let device = try phones.create()
    let session = try device.openSession()
    try session.add("one", .always)
    try session.add("two", .always)
    try session.close()
    try session.close()
    #expect(!FileManager.default.fileExists(atPath: DeviceFile.keychain.path(in: device.directory) + "-wal"))
    #expect(try device.openSession(.reading).record.revision == "r3")
    #expect(try device.openSession(.reading).itemCount == 2)
  }

  @Test("Closing a session throws an error if its changes cannot be written to the disk")
  func closedWithError() throws {
    let phones = try Phones()
    let device = try phones.create()
    // A step is a changing file operation. The twenty-first one and all later ones fail.
    let stepLimit = 20
    let faults = Faults(after: stepLimit)
    let session = try device.using(faults.files).openSession()
    try session.add("one", .always)
    while faults.stepCount < stepLimit { try? session.recordBackup(at: Phones.now) }
    #expect(try code { try session.add("two", .always) } == nil)
    #expect(try code { try session.close() } == .deviceIO)
    #expect(try device.openSession(.reading).itemCount == 2)
  }

  @Test("A session for reading rejects all changes")
  func readOnly() throws {
    let phones = try Phones()
    let device = try phones.create()
    let session = try device.openSession(.reading)
    #expect(try code { try session.lock() } == .deviceNotWritable)
    #expect(try code { try session.unlock("x") } == .deviceNotWritable)
    #expect(try code { try session.erase() } == .deviceNotWritable)
    #expect(try code { try session.restart() } == .deviceNotWritable)
    #expect(try code { try session.add("x", .always) } == .deviceNotWritable)
    #expect(try code { try session.recordBackup(at: Phones.now) } == .deviceNotWritable)
    #expect(session.record.failedAttempts == 0)
  }

  @Test("The summary of a busy device is returned at once and contains only the record")
  func summary() throws {
    let phones = try Phones()
    let device = try phones.create()
    try device.openSession().add("plain", .always)
    let summary = try device.summary(command: "keyhaul device list")
    #expect(summary.itemCount == 1)
    #expect(summary.state == .unlocked)
    #expect(summary.isPasscodeSet == true)
    let session = try device.openSession()
    defer { session.invalidate() }
    let busySummary = try device.summary(command: "keyhaul device list")
    #expect(busySummary.isBusy)
    #expect(busySummary.record.udid == summary.record.udid)
    #expect(busySummary.itemCount == nil)
  }

  @Test("A reader removes only its own description from the lock file")
  func descriptionsOfReaders() throws {
    let phones = try Phones()
    let device = try phones.create()
    func description() throws -> String { String(decoding: try device.read(.lock), as: UTF8.self) }
    let first = try device.openSession(.reading, verb: "a rather long name")
    #expect(try description().contains("a rather long name"))
    let second = try device.openSession(.reading, verb: "short")
    #expect(try description().contains("\"short\"") && description().hasSuffix("}\n"))
    first.invalidate()
    #expect(try description().contains("short"))
    second.invalidate()
    #expect(try description().isEmpty)
  }

  @Test("The error for a busy device does not name a dead process from the lock file")
  func deadHolder() throws {
    let phones = try Phones()
    let device = try phones.create()
    let session = try device.openSession()
    defer { session.invalidate() }
    // No process has a number this high.
    let text = "{\"pid\": 99999999, \"verb\": \"keyhaul restore\", \"since\": \"2026-01-01T00:00:00Z\"}"
    try device.write(Array(text.utf8), to: .lock)
    #expect(throws: KeyhaulError(.deviceBusy, "phone", "another process is using it")) { _ = try device.openSession() }
  }

  @Test("The description of a holder contains no control characters")
  func hostileHolder() throws {
    let phones = try Phones()
    let device = try phones.create()
    let session = try device.openSession(.writing, verb: "\u{1b}[31m" + String(repeating: "x", count: 100))
    defer { session.invalidate() }
    let error = #expect(throws: KeyhaulError.self) { _ = try device.openSession() }
    // The control character is omitted, and the command is cut to 40 characters.
    #expect(error?.reason == "process \(getpid()) ([31m\(String(repeating: "x", count: 36))) has used it for 0 s")
  }

  @Test("Processes that create devices in one folder take turns")
  func creatingDevices() throws {
    let phones = try Phones()
    _ = try phones.create("first")
    let sleepCount = Locked(0)
    let otherLock = Locked<DeviceSetLock?>(
      try DeviceSetLock(phones.home.path, clock: .fixed(at: Phones.now), DeviceFiles()))
    var environment = phones.home.environment
    environment.clock = DeviceClock(
      now: { Phones.now },
      sleep: { _ in
        sleepCount.withLock { $0 += 1 }
        otherLock.withLock { $0 = nil }
      })
    _ = try DeviceSet(path: phones.home.path, environment: environment)
      .create(DeviceName("second"), passcode: Secret(utf8: ""))
    #expect(sleepCount.withLock { $0 } == 1)
    #expect(try phones.home.devices().map(\.name.text) == ["first", "second"])
  }

  @Test("A device cannot be created while another process creates one in the same folder")
  func folderInUse() throws {
    let phones = try Phones()
    _ = try phones.create("first")
    let otherLock = try DeviceSetLock(phones.home.path, clock: .fixed(at: Phones.now), DeviceFiles())
    #expect(try code { _ = try phones.create("second") } == .deviceBusy)
    _ = consume otherLock
    #expect(try phones.home.devices().map(\.name.text) == ["first"])
  }

  @Test(
    "A device that no process has locked can be opened, regardless of the text in its lock file",
    // A process that does not exist, an empty file, a control character, and incomplete JSON.
    arguments: [
      "{\"pid\": 99999999, \"verb\": \"keyhaul restore\", \"since\": \"2026-01-01T00:00:00Z\"}", "", "\u{1b}[31m", "{",
    ])
  func staleDescription(_ text: String) throws {
    let phones = try Phones()
    let device = try phones.create()
    try device.write(Array(text.utf8), to: .lock)
    #expect(try code { try device.openSession().lock() } == nil)
  }

  @Test(
    "A device that another process has locked is busy until that process dies",
    .enabled(if: FileManager.default.fileExists(atPath: "/usr/bin/flock")))
  func otherProcess() throws {
    let phones = try Phones()
    let device = try phones.create()
    let lock = DeviceFile.lock.path(in: device.directory)
    let marker = phones.directory.path("held")
    var isLocked = false
    let outcome = try ChildProcess(
      "flock", ["--no-fork", lock, "/bin/sh", "-c", #"echo > "$0"; exec sleep 300"#, marker]
    ).run { process in
      usleep(2_000)
      guard !isLocked, FileManager.default.fileExists(atPath: marker) else { return }
      isLocked = true
      try device.write(Array("\u{1b}]0;title\u{7}".utf8), to: .lock)
      let error = #expect(throws: KeyhaulError.self) { _ = try device.openSession() }
      #expect(error?.code == .deviceBusy)
      #expect(error?.reason == "another process is using it")
      kill(process, SIGKILL)
    }
    #expect(isLocked && outcome.status == 128 + SIGKILL)
    #expect(try code { _ = try device.openSession() } == nil)
  }
}

/// Makes a session sendable, so that the closure of a clock can end it.
private final class SharedSession: Sendable {
  private nonisolated(unsafe) let session: DeviceSession

  init(_ session: DeviceSession) { self.session = session }

  func invalidate() { session.invalidate() }
}
