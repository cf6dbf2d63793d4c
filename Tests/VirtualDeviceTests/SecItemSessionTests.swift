import Basics
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing

@testable import VirtualDevice

/// A clock that tests advance.
private final class ManualClock: Sendable {
  private let seconds = Locked(785_412_345.0)

  func advance(_ duration: Double) { seconds.withLock { $0 += duration } }

  var clock: DeviceClock {
    DeviceClock(
      now: { KeychainDate(secondsSinceReferenceDate: self.seconds.withLock { $0 }) },
      sleep: { self.advance(Double($0.components.seconds)) })
  }
}

/// Sources: Apple, "Encrypting Your App's Files"; Apple Platform Security.
@Suite("SecItem: calls of apps on a device, and its lock")
struct SecItemSessionTests {
  private let directory: TemporaryDirectory
  private let clock = ManualClock()
  private let device: VirtualDevice
  private let mail: SecItemQuery = ["class": "genp", "acct": "anna", "v_Data": .data([1])]

  init() throws {
    directory = try TemporaryDirectory()
    let environment = DeviceEnvironment(
      clock: clock.clock, random: SeededRandomSource(seed: "session"), passcodeRounds: 3)
    let home = DeviceSet(path: directory.path("devices"), environment: environment)
    var options = DeviceOptions()
    options.apps = [
      DeviceApp(name: "mail", accessGroups: ["TEAM.mail"]), DeviceApp(name: "shop", accessGroups: ["TEAM.shop"]),
    ]
    device = try home.create(DeviceName("phone"), options, passcode: Secret(utf8: "1234"))
  }

  private func status(_ body: () throws(SecItemError) -> Void) -> Int32 {
    do throws(SecItemError) {
      try body()
      return 0
    } catch {
      return error.status.rawValue
    }
  }

  private func statusOfReading(_ session: DeviceSession, as app: String = "mail") -> Int32 {
    status { () throws(SecItemError) in _ = try session.secItemCopyMatching(["class": "genp"], as: app) }
  }

  @Test("Apps find their own items, and an app that is not installed has no group (-34018)")
  func apps() throws {
    let session = try device.openSession()
    let revision = session.record.revision
    try session.secItemAdd(mail, as: "mail")
    #expect(session.record.revision != revision)
    #expect(statusOfReading(session) == 0)
    #expect(statusOfReading(session, as: "shop") == -25300)
    #expect(statusOfReading(session, as: "nobody") == -34018)
    try session.secItemUpdate(["class": "genp"], changes: ["labl": "l"], as: "mail")
    try session.secItemDelete(["class": "genp"], as: "mail")
    #expect(statusOfReading(session) == -25300)
  }

  @Test("A session for reading allows searches and rejects changes (-25291)")
  func reading() throws {
    try device.openSession().secItemAdd(mail, as: "mail")
    let session = try device.openSession(.reading)
    #expect(statusOfReading(session) == 0)
    #expect(status { () throws(SecItemError) in try session.secItemAdd(mail, as: "mail") } == -25291)
  }

  @Test("A lock is announced immediately, and the keys are removed ten seconds later")
  func grace() throws {
    let session = try device.openSession()
    try session.secItemAdd(mail, as: "mail")
    let events = Locked<[ProtectedDataEvent]>([])
    device.protectedData.observe { event in events.withLock { $0.append(event) } }
    let end = KeychainDate(secondsSinceReferenceDate: 785_412_355)

    try session.requestLock()
    #expect(events.withLock { $0 } == [.willBecomeUnavailable(at: end)])
    #expect(statusOfReading(session) == 0)
    clock.advance(9.5)
    #expect(statusOfReading(session) == 0 && session.isLocking && session.state == .unlocked)
    clock.advance(0.5)
    #expect(statusOfReading(session) == -25308)
    #expect(session.state == .locked && !session.isLocking)
    #expect(events.withLock { $0 } == [.willBecomeUnavailable(at: end), .didBecomeUnavailable])
    let hasKey = session.classKeys.hasKey(of: .whenUnlocked)
    #expect(!hasKey)
  }

  @Test("A process that ends within the ten seconds leaves a locked device")
  func endedProcess() throws {
    let session = try device.openSession()
    try session.secItemAdd(mail, as: "mail")
    try session.requestLock()
    session.invalidate()
    #expect(try device.openSession(.reading).state == .locked)
  }

  @Test("Waiting for the lock takes the rest of the ten seconds")
  func waiting() throws {
    let session = try device.openSession()
    try session.requestLock()
    clock.advance(4)
    session.waitForLock()
    #expect(session.state == .locked)
    #expect(device.environment.clock.now().secondsSinceReferenceDate == 785_412_355)
  }

  @Test("Unlocking within the ten seconds keeps the keys, and no removal is announced")
  func unlockedAgain() throws {
    let session = try device.openSession()
    let events = Locked<[ProtectedDataEvent]>([])
    try session.requestLock()
    device.protectedData.observe { event in events.withLock { $0.append(event) } }
    try session.unlock("1234")
    clock.advance(60)
    #expect(session.state == .unlocked)
    #expect(events.withLock { $0 } == [])
  }

  @Test("An immediate lock removes the keys at once and is announced before and after, like an unlock")
  func atOnce() throws {
    let session = try device.openSession()
    let events = Locked<[ProtectedDataEvent]>([])
    let observation = device.protectedData.observe { event in events.withLock { $0.append(event) } }
    try session.lock()
    #expect(session.state == .locked)
    try session.unlock("1234")
    let now = device.environment.clock.now()
    let expected: [ProtectedDataEvent] = [
      .willBecomeUnavailable(at: now), .didBecomeUnavailable, .didBecomeAvailable,
    ]
    #expect(events.withLock { $0 } == expected)
    device.protectedData.remove(observation)
    try session.lock()
    #expect(events.withLock { $0 } == expected)
  }

  @Test("A device without a passcode cannot be locked by request")
  func noPasscode() throws {
    let session = try device.openSession()
    try session.removePasscode(Secret(utf8: "1234"))
    #expect(try code { try session.requestLock() } == .noPasscode)
  }

  @Test("The device's user answers in all sessions, and is absent by default")
  func user() throws {
    let session = try device.openSession()
    let control = try AccessControl(protection: .whenUnlocked, flags: .userPresence)
    var query = mail
    query["accc"] = .accessControl(control)
    try session.secItemAdd(query, as: "mail")
    func read() -> Int32 {
      status { () throws(SecItemError) in
        _ = try session.secItemCopyMatching(["class": "genp", "r_Data": true], as: "mail")
      }
    }
    #expect(read() == -25308)
    for (answer, expected) in [(.allow, 0), (.deny, -25293), (.cancel, -128)] as [(AuthenticationOutcome, Int32)] {
      device.user.answer = answer
      #expect(read() == expected)
    }
    #expect(device.user.requests.count == 4)
  }

  @Test("Items of the passcode class are deleted with the passcode")
  func passcodeClass() throws {
    let session = try device.openSession()
    var query = mail
    query["pdmn"] = "akpu"
    try session.secItemAdd(query, as: "mail")
    #expect(statusOfReading(session) == 0)
    try session.removePasscode(Secret(utf8: "1234"))
    #expect(statusOfReading(session) == -25300)
    #expect(status { () throws(SecItemError) in try session.secItemAdd(query, as: "mail") } == -25293)
    try session.setPasscode(Secret(utf8: "5678"))
    #expect(statusOfReading(session) == -25300)
  }
}
