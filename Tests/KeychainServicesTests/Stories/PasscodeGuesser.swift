import Basics
import Foundation
import KeychainCrypto
import VirtualDevice

/// Tries passcodes on a device.
struct PasscodeGuesser {
  struct Report {
    /// The passcode, or `nil` if no guess was correct.
    let passcode: String?
    let guessCount: Int
    /// The duration in seconds.
    let time: Double

    var guessesPerSecond: Double { Double(guessCount) / time }

    /// Returns the time to try every passcode of this length, in seconds.
    func worstCase(symbols: Int, length: Int) -> Double { pow(Double(symbols), Double(length)) / guessesPerSecond }

    var text: String {
      """
      \(passcode.map { "the passcode is \($0)" } ?? "no passcode found") after \(guessCount) guesses
      \(Int(guessesPerSecond)) guesses per second; at most
        4 digits   \(Self.durationText(worstCase(symbols: 10, length: 4)))
        6 digits   \(Self.durationText(worstCase(symbols: 10, length: 6)))
        8 letters  \(Self.durationText(worstCase(symbols: 26, length: 8)))
      """
    }

    private static func durationText(_ seconds: Double) -> String {
      switch seconds {
      case ..<120: "\(Int(seconds.rounded(.up))) seconds"
      case ..<7200: "\(Int(seconds / 60)) minutes"
      case ..<172_800: "\(Int(seconds / 3600)) hours"
      default: "\(Int(seconds / 86400)) days"
      }
    }
  }

  /// All passcodes of four digits, in ascending order.
  static let fourDigits = (0..<10_000).map { number in
    let digits = String(number)
    return String(repeating: "0", count: 4 - digits.count) + digits
  }

  /// Tries the passcodes until one unlocks the device.
  ///
  /// - Throws: `KeyhaulError`, code `erased` if the device has erased its keys, or any other error except a wrong
  ///   passcode.
  static func open(_ device: VirtualDevice, with guesses: some Sequence<String>) throws(KeyhaulError) -> Report {
    let start = ContinuousClock.now
    var count = 0
    var passcode: String?
    try device.withSession(.writing, verb: "guess") { (session) throws(KeyhaulError) in
      for guess in guesses {
        count += 1
        do throws(KeyhaulError) {
          try session.unlock(passcode: Secret(utf8: guess))
          passcode = guess
          return
        } catch {
          guard error.code == .wrongPasscode else { throw error }
        }
      }
    }
    let (seconds, attoseconds) = (ContinuousClock.now - start).components
    return Report(passcode: passcode, guessCount: count, time: Double(seconds) + Double(attoseconds) / 1e18)
  }
}
