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

  var deviceClock: DeviceClock {
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
      clock: clock.deviceClock, random: SeededRandomSource(seed: "session"), passcodeRounds: 3)
    let home = DeviceSet(path: directory.path("devices"), environment: environment)
    var options = DeviceOptions()
    options.apps = [
      DeviceApp(name: "mail", accessGroups: ["TEAM.mail"]), DeviceApp(name: "shop", accessGroups: ["TEAM.shop"]),
    ]
    device = try home.create(DeviceName("phone"), options, passcode: Secret(utf8: "1234"))
  }

  private func status(_ call: () throws(SecItemError) -> Void) -> SecItemStatus {
    do throws(SecItemError) {
      try call()
      return .success
    } catch {
      return error.status
    }
  }

  private func statusOfReading(_ session: DeviceSession, as app: String = "mail") -> SecItemStatus {
    status { () throws(SecItemError) in _ = try session.secItemCopyMatching(["class": "genp"], as: app) }
  }

  @Test("Apps find their own items, and an app that is not installed has no group (-34018)")
  func apps() throws {
    let session = try device.openSession()
    let revision = session.record.revision
    try session.secItemAdd(mail, as: "mail")
    #expect(session.record.revision != revision)
    #expect(statusOfReading(session) == .success)
    #expect(statusOfReading(session, as: "shop") == .itemNotFound)
    #expect(statusOfReading(session, as: "nobody") == .missingEntitlement)
    try session.secItemUpdate(["class": "genp"], changes: ["labl": "l"], as: "mail")
    try session.secItemDelete(["class": "genp"], as: "mail")
    #expect(statusOfReading(session) == .itemNotFound)
  }

  @Test("A session for reading allows searches and rejects changes (-25291)")
  func reading() throws {
    try device.openSession().secItemAdd(mail, as: "mail")
    let session = try device.openSession(.reading)
    #expect(statusOfReading(session) == .success)
    #expect(status { () throws(SecItemError) in try session.secItemAdd(mail, as: "mail") } == .notAvailable)
  }

  @Test("A lock is announced immediately, and the keys are removed ten seconds later")
  func gracePeriod() throws {
    let session = try device.openSession()
    try session.secItemAdd(mail, as: "mail")
    let events = Locked<[ProtectedDataEvent]>([])
    device.protectedData.observe { event in events.withLock { $0.append(event) } }
    let now = device.environment.clock.now().secondsSinceReferenceDate
    let lockDate = KeychainDate(secondsSinceReferenceDate: now + 10)

    try session.requestLock()
    #expect(events.withLock { $0 } == [.willBecomeUnavailable(at: lockDate)])
    #expect(statusOfReading(session) == .success)
    clock.advance(9.5)
    #expect(statusOfReading(session) == .success && session.isLocking && session.state == .unlocked)
    clock.advance(0.5)
    #expect(statusOfReading(session) == .interactionNotAllowed)
    #expect(session.state == .locked && !session.isLocking)
    #expect(events.withLock { $0 } == [.willBecomeUnavailable(at: lockDate), .didBecomeUnavailable])
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
    let requestTime = device.environment.clock.now().secondsSinceReferenceDate
    try session.requestLock()
    clock.advance(4)
    session.waitForLock()
    #expect(session.state == .locked)
    #expect(device.environment.clock.now().secondsSinceReferenceDate == requestTime + 10)
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

  @Test("An immediate lock is announced before and after it removes the keys, and an unlock only afterwards")
  func immediateLock() throws {
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
    func statusOfReadingSecret() -> SecItemStatus {
      status { () throws(SecItemError) in
        _ = try session.secItemCopyMatching(["class": "genp", "r_Data": true], as: "mail")
      }
    }
    #expect(statusOfReadingSecret() == .interactionNotAllowed)
    device.user.answer = .allow
    #expect(statusOfReadingSecret() == .success)
    device.user.answer = .deny
    #expect(statusOfReadingSecret() == .authFailed)
    device.user.answer = .cancel
    #expect(statusOfReadingSecret() == .userCanceled)
    #expect(device.user.requests.count == 4)
  }

  @Test("Items of the passcode class are deleted with the passcode")
  func passcodeClass() throws {
    let session = try device.openSession()
    var query = mail
    query["pdmn"] = "akpu"
    try session.secItemAdd(query, as: "mail")
    #expect(statusOfReading(session) == .success)
    try session.removePasscode(Secret(utf8: "1234"))
    #expect(statusOfReading(session) == .itemNotFound)
    #expect(status { () throws(SecItemError) in try session.secItemAdd(query, as: "mail") } == .authFailed)
    try session.setPasscode(Secret(utf8: "5678"))
    #expect(statusOfReading(session) == .itemNotFound)
  }
}
