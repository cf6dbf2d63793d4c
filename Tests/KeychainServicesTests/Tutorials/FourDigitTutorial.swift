import Basics
import KeychainCrypto
import KeychainServices
import Testing
import VirtualDevice

/// Returns the time to try every passcode, if the chip needs 80 milliseconds for each guess.
func worstCase(symbols: Int, length: Int) -> Duration {
  .milliseconds(80) * (0..<length).reduce(1) { count, _ in count * symbols }
}

@Test func tenThousandGuesses() throws {
  // With one iteration of the key derivation, a guess takes almost no time.
  let phone = try KeychainClient.onNewDevice(
    passcode: "0042", environment: DeviceEnvironment(passcodeRounds: 1))
  try phone.restart()

  var found: String?
  try phone.device.withSession(.writing, verb: "guess") { (session) throws(KeyhaulError) in
    for number in 0..<10_000 {
      // Four digits, with leading zeros.
      let guess = String(String(10_000 + number).dropFirst())
      do throws(KeyhaulError) {
        try session.unlock(passcode: Secret(utf8: guess))
        found = guess
        break
      } catch  where error.code == .wrongPasscode {
        continue
      }
    }
  }
  #expect(found == "0042")

  #expect(worstCase(symbols: 10, length: 4) == .seconds(800))
  #expect(worstCase(symbols: 10, length: 6) == .seconds(80_000))  // a day
  #expect(worstCase(symbols: 26, length: 8) > .seconds(500 * 365 * 86_400))  // 500 years
}

@Test func tenWrongGuessesAreEnough() throws {
  let phone = try KeychainClient.onNewDevice(
    passcode: "9999", options: DeviceOptions(eraseAfterFailures: DeviceOptions.standardEraseAfterFailures),
    environment: DeviceEnvironment(passcodeRounds: 1))
  try phone.restart()
  for _ in 1...10 { try? phone.unlock(passcode: "0000") }
  #expect(throws: KeyhaulError.self) { try phone.unlock(passcode: "9999") }  // erased: there is no passcode
}
