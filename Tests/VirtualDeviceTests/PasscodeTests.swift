import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import Testing

@testable import VirtualDevice

@Suite("Items of the passcode class")
struct PasscodeClassTests {
  @Test("Removing the passcode deletes the items of its class, and none can be added until a passcode is set")
  func removal() throws {
    let phones = try Phones()
    let device = try phones.create()
    let session = try device.openSession()

    #expect(try session.statusOfAdding("plain", .whenUnlocked) == .success)
    #expect(try session.statusOfAdding("card", .whenPasscodeSetThisDeviceOnly) == .success)
    #expect(try session.statusOfReading("plain") == .success)
    #expect(try session.statusOfReading("card") == .success)

    #expect(try session.removePasscode(Secret(utf8: "1234")) == 1)
    #expect(try session.statusOfReading("plain") == .success)
    #expect(try session.statusOfReading("card") == .itemNotFound)
    #expect(try session.statusOfAdding("plain", .whenUnlocked) == .duplicateItem)
    #expect(try session.statusOfAdding("card", .whenPasscodeSetThisDeviceOnly) == .authFailed)

    try session.setPasscode(Secret(utf8: "5678"))
    #expect(try session.statusOfReading("plain") == .success)
    #expect(try session.statusOfReading("card") == .itemNotFound)
    #expect(try session.statusOfAdding("card", .whenPasscodeSetThisDeviceOnly) == .success)
  }

  @Test("Setting a passcode creates a new key for class 12 and keeps all others")
  func newKey() throws {
    let phones = try Phones()
    let session = try phones.create().openSession()
    let (otherKeys, passcodeClassKey) = (session.rawKeys(1...11), session.rawKeys(12...12))
    try session.removePasscode(Secret(utf8: "1234"))
    #expect(session.rawKeys(12...12).isEmpty)
    try session.setPasscode(Secret(utf8: "1234"))
    #expect(session.rawKeys(1...11) == otherKeys)
    #expect(session.rawKeys(12...12) != passcodeClassKey)
  }

  @Test("Changing the passcode keeps every item, including those of the passcode class")
  func change() throws {
    let phones = try Phones()
    let device = try phones.create()
    let session = try device.openSession()
    try session.add("card", .whenPasscodeSetThisDeviceOnly)
    try session.changePasscode(from: Secret(utf8: "1234"), to: Secret(utf8: "long passphrase ü"))
    try session.restart()
    #expect(try code { try session.unlock("1234") } == .wrongPasscode)
    try session.unlock("long passphrase ü")
    #expect(try session.secret(of: "card") == "secret")
  }

  @Test("Invalid passcode changes are rejected and change nothing")
  func refused() throws {
    let phones = try Phones()
    let device = try phones.create()
    let session = try device.openSession()
    let keybag = try device.read(.keybag)
    #expect(try code { try session.setPasscode(Secret(utf8: "1")) } == .passcodeSet)
    #expect(try code { try session.changePasscode(from: Secret(utf8: "1234"), to: Secret(utf8: "")) } == .emptyPasscode)
    try session.lock()
    #expect(try code { try session.changePasscode(from: Secret(utf8: "1234"), to: Secret(utf8: "2")) } == .locked)
    #expect(try code { try session.removePasscode(Secret(utf8: "1234")) } == .locked)
    #expect(try device.read(.keybag) == keybag)
  }

  @Test("If no passcode is set, it cannot be changed or removed, and an empty one cannot be set")
  func refusedWithoutPasscode() throws {
    let phones = try Phones()
    let session = try phones.create("open", passcode: "").openSession()
    #expect(try code { try session.removePasscode(Secret(utf8: "")) } == .noPasscode)
    #expect(try code { try session.changePasscode(from: Secret(utf8: ""), to: Secret(utf8: "1")) } == .noPasscode)
    #expect(try code { try session.setPasscode(Secret(utf8: "")) } == .emptyPasscode)
  }
}

@Suite("Wrong passcodes")
struct WrongPasscodeTests {
  @Test("A wrong passcode is counted across processes until the correct one is entered")
  func counted() throws {
    let phones = try Phones()
    let device = try phones.create()
    try device.openSession().lock()
    for count in 1...3 {
      #expect(try code { try device.openSession().unlock("\(count)") } == .wrongPasscode)
      #expect(try device.openSession(.reading).record.failedAttempts == count)
      #expect(try device.openSession(.reading).state == .locked)
    }
    try device.openSession().unlock("1234")
    #expect(try device.openSession(.reading).record.failedAttempts == 0)
  }

  @Test("A wrong passcode is also counted when the passcode is changed or removed")
  func countedInSettings() throws {
    let phones = try Phones()
    let session = try phones.create().openSession()
    #expect(
      try code { try session.changePasscode(from: Secret(utf8: "x"), to: Secret(utf8: "y")) } == .wrongPasscode)
    #expect(try code { try session.removePasscode(Secret(utf8: "x")) } == .wrongPasscode)
    #expect(session.record.failedAttempts == 2)
    try session.changePasscode(from: Secret(utf8: "1234"), to: Secret(utf8: "y"))
    #expect(session.record.failedAttempts == 0)
  }

  @Test("A passcode attempt is counted on disk before it is tried")
  func countedFirst() throws {
    let phones = try Phones()
    let device = try phones.create()
    try device.openSession().lock()
    // Replacing the record takes five steps. Every later step fails.
    let faults = Faults(after: 5)
    #expect(throws: KeyhaulError.self) { try device.using(faults.files).openSession().unlock("1234") }
    #expect(try device.openSession(.reading).record.failedAttempts == 1)
    #expect(try device.openSession(.reading).state == .locked)
  }

  @Test("Ten wrong passcodes erase a device that is set to erase itself")
  func eraseAfterTen() throws {
    let phones = try Phones()
    let device = try phones.create("phone", DeviceOptions(eraseAfterFailures: 10))
    try device.openSession().add("plain", .always)
    let udid = try device.openSession(.reading).record.udid
    let hardware = try device.read(.hardware)
    try device.openSession().lock()
    for _ in 1...9 { #expect(try code { try device.openSession().unlock("x") } == .wrongPasscode) }
    #expect(try device.openSession(.reading).itemCount == 1)

    #expect(try code { try device.openSession().unlock("x") } == .erased)

    let session = try device.openSession()
    #expect(try session.itemCount == 0)
    #expect(!session.isPasscodeSet)
    #expect(session.state == .unlocked)
    #expect(session.record.failedAttempts == 0)
    #expect(session.record.udid == udid)
    #expect(try device.read(.hardware) == hardware)
  }

  @Test("An attempt that was begun but not completed counts as failed")
  func unfinishedAttempt() throws {
    let phones = try Phones()
    let device = try phones.create("phone", DeviceOptions(eraseAfterFailures: 2))
    try device.openSession().lock()
    for _ in 1...2 {
      // The first five steps write the record, which counts the attempt.
      #expect(throws: KeyhaulError.self) { try device.using(Faults(after: 5).files).openSession().unlock("x") }
    }
    #expect(try device.openSession(.reading).isPasscodeSet)
    #expect(try code { try device.openSession().unlock("1234") } == .erased)
    #expect(try !device.openSession(.reading).isPasscodeSet)
  }

  @Test("A device that is not set to erase itself is never erased")
  func neverErases() throws {
    let phones = try Phones()
    let device = try phones.create()
    let session = try device.openSession()
    try session.lock()
    // Other devices erase themselves after ten attempts.
    for _ in 1...15 { #expect(try code { try session.unlock("x") } == .wrongPasscode) }
    try session.unlock("1234")
  }

  @Test(
    "A passcode is compared byte for byte, without trimming or normalization",
    arguments: ["1234 ", "1234\n", " 1234", "12345", "123"])
  func exact(_ guess: String) throws {
    let phones = try Phones()
    let session = try phones.create().openSession()
    try session.lock()
    #expect(try code { try session.unlock(guess) } == .wrongPasscode)
  }
}

@Suite("Guessing a four-digit passcode")
struct GuessingTests {
  @Test("Guessing on the device requires one derivation and one counted attempt for each guess")
  func guessing() throws {
    let phones = try Phones()
    let device = try phones.create(passcode: "0042")
    let session = try device.openSession()
    try session.lock()
    var foundPasscode: Int?
    for guess in 0...9999 {
      let text = String(repeating: "0", count: 4 - String(guess).count) + String(guess)
      if try code({ try session.unlock(text) }) == nil {
        foundPasscode = guess
        break
      }
      #expect(session.record.failedAttempts == guess + 1)
    }
    #expect(foundPasscode == 42)
  }

  @Test("The iterations of the keybag are kept regardless of the default")
  func cost() throws {
    let phones = try Phones(rounds: 7)
    let device = try phones.create()
    let session = try device.openSession()
    #expect(session.keybag.keybag.iterations == 7)
    try session.removePasscode(Secret(utf8: "1234"))
    try session.setPasscode(Secret(utf8: "1"))
    #expect(session.keybag.keybag.iterations == 7)
    try session.erase()
    #expect(session.keybag.keybag.iterations == 7)
    #expect(DeviceEnvironment.standardPasscodeRounds == 50_000)
  }
}

@Suite("Stopped passcode derivations")
struct StoppedPasscodeTests {
  /// Creates a device in an environment that stops the derivation of its passcode's key after the first chunk. A chunk
  /// has 20,000 iterations, so the tests use a key with 30,000.
  private func deviceThatStops(_ phones: Phones) throws -> VirtualDevice {
    _ = try phones.create()
    var environment = phones.home.environment
    environment.clock = DeviceClock(now: { Phones.now }, sleep: { _ in }, shouldContinue: { false })
    return try DeviceSet(path: phones.home.path, environment: environment).device(DeviceName("phone"))
  }

  @Test("A stopped attempt leaves the device as it was and is not counted")
  func unlock() throws {
    let phones = try Phones(rounds: 30_000)
    let device = try deviceThatStops(phones)
    let session = try device.openSession()
    try session.restart()
    let files = try [DeviceFile.record, .keybag].map { try device.read($0) }
    for passcode in ["1234", "4321"] {
      let error = #expect(throws: KeyhaulError.self) { try session.unlock(passcode: Secret(utf8: passcode)) }
      #expect((error?.underlying as? DataProtectionError)?.code == .cancelled)
    }
    #expect(session.state != .unlocked && session.record.failedAttempts == 0)
    #expect(try [DeviceFile.record, .keybag].map { try device.read($0) } == files)
  }

  enum Action: CaseIterable { case changePasscode, removePasscode, erase }

  @Test("A stopped change of the passcode or a stopped erase changes nothing", arguments: Action.allCases)
  func changes(action: Action) throws {
    let phones = try Phones(rounds: 30_000)
    let device = try deviceThatStops(phones)
    let session = try device.openSession()
    let files = try [DeviceFile.record, .keybag].map { try device.read($0) }
    let error = #expect(throws: KeyhaulError.self) {
      switch action {
      case .changePasscode: try session.changePasscode(from: Secret(utf8: "1234"), to: Secret(utf8: "5678"))
      case .removePasscode: try session.removePasscode(Secret(utf8: "1234"))
      case .erase: try session.erase()
      }
    }
    #expect((error?.underlying as? DataProtectionError)?.code == .cancelled)
    #expect(try [DeviceFile.record, .keybag].map { try device.read($0) } == files)
  }
}
