import Basics
import Foundation
import KeychainExamples
import KeychainServices
import TestSupport
import Testing
import VirtualDevice

@Suite("Story 7: the four-digit passcode")
struct FourDigitStory {
  /// Creates a device that derives a key from a passcode with one iteration. A real chip needs 80 milliseconds for
  /// each derivation.
  private func phone(_ passcode: String, eraseAfterFailures: Int? = nil) throws -> KeychainClient {
    try .onNewDevice(
      passcode: passcode, options: DeviceOptions(eraseAfterFailures: eraseAfterFailures),
      environment: DeviceEnvironment(clock: .skippingWaits(), passcodeRounds: 1))
  }

  @Test("Trying up to 10,000 passcodes (1,000 in a quick run) finds the right one, and the report has estimates")
  func everyPasscode() throws {
    let count = Cases.count(10_000, quick: 1_000)
    let passcode = PasscodeGuesser.fourDigits[count - 1]
    let phone = try phone(passcode)
    #expect(phone.perform { keys.addKey(Data("secret".utf8), named: "key") } == errSecSuccess)
    try phone.restart()
    #expect(phone.perform { keys.readKey(named: "key") }.status == errSecInteractionNotAllowed)

    let report = try PasscodeGuesser.open(phone.device, with: PasscodeGuesser.fourDigits)

    #expect(report.passcode == passcode)
    #expect(report.guessCount == count)
    #expect(report.guessesPerSecond > 0)
    let fourDigits = report.worstCase(symbols: 10, length: 4)
    let sixDigits = report.worstCase(symbols: 10, length: 6)
    let eightLetters = report.worstCase(symbols: 26, length: 8)
    #expect(abs(fourDigits / report.time * Double(count) / 10_000 - 1) < 1e-9, "10,000 passcodes have four digits")
    #expect(abs(sixDigits / fourDigits - 100) < 1e-6, "there are 100 times as many passcodes of six digits")
    // 26^8 / 10^6
    #expect(abs(eightLetters / sixDigits - 208_827.064576) < 1e-3)
    #expect(phone.perform { keys.readKey(named: "key") }.key == Data("secret".utf8))
  }

  @Test("The text of the report has the guesses, the rate, and three estimates")
  func reportText() {
    #expect(
      PasscodeGuesser.Report(passcode: "0042", guessCount: 43, time: 0.0172).text == """
        the passcode is 0042 after 43 guesses
        2500 guesses per second; at most
          4 digits   4 seconds
          6 digits   6 minutes
          8 letters  966 days
        """)
    #expect(
      PasscodeGuesser.Report(passcode: nil, guessCount: 1000, time: 80).text == """
        no passcode found after 1000 guesses
        12 guesses per second; at most
          4 digits   13 minutes
          6 digits   22 hours
          8 letters  193358 days
        """)
  }

  @Test("The tenth wrong passcode erases the keys, and the correct passcode no longer works")
  func erase() throws {
    let phone = try phone("9999", eraseAfterFailures: 10)
    #expect(phone.perform { keys.addKey(Data("secret".utf8), named: "key") } == errSecSuccess)
    try phone.lock()

    for guess in PasscodeGuesser.fourDigits.prefix(9) {
      #expect(try errorCode { try phone.unlock(passcode: guess) } == .wrongPasscode)
    }
    #expect(try errorCode { _ = try PasscodeGuesser.open(phone.device, with: PasscodeGuesser.fourDigits) } == .erased)

    #expect(try errorCode { try phone.unlock(passcode: "9999") } == .noPasscode)
    #expect(phone.perform { keys.readKey(named: "key") }.status == errSecItemNotFound)
  }

  @Test("A copied device directory without its hardware UID, or with another device's, cannot be unlocked")
  func copiedDirectory() throws {
    let phone = try phone("0007")
    let otherPhone = try self.phone("1234")
    try phone.restart()
    let directory = try TemporaryDirectory()
    for (name, keyFile) in [("no-key", nil), ("other-key", otherPhone.device.directory + "/hardware.uid")] {
      let copy = directory.path(name)
      try FileManager.default.copyItem(atPath: phone.device.directory, toPath: copy)
      try FileManager.default.removeItem(atPath: copy + "/hardware.uid")
      if let keyFile { try FileManager.default.copyItem(atPath: keyFile, toPath: copy + "/hardware.uid") }
      let device = try DeviceSet(path: directory.path, environment: phone.device.environment).device(DeviceName(name))
      for guess in ["0007", "1234", ""] {
        #expect(try errorCode { _ = try PasscodeGuesser.open(device, with: [guess]) } == .deviceDamaged, "\(name)")
      }
    }
    // The eighth guess from 0000 is 0007.
    #expect(try PasscodeGuesser.open(phone.device, with: PasscodeGuesser.fourDigits).guessCount == 8)
  }

  private var keys: ProtectedKeys { ProtectedKeys(service: "game", accessible: kSecAttrAccessibleWhenUnlocked) }

  /// Returns the code of the error that a closure throws, or `nil` if it throws none.
  private func errorCode(_ body: () throws -> Void) throws -> KeyhaulError.Code? {
    do {
      try body()
      return nil
    } catch let error as KeyhaulError {
      return error.code
    }
  }
}
