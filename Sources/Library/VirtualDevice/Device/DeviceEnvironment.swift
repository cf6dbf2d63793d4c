import Basics
public import KeychainCrypto

/// What a device takes from outside: time, randomness, the cost of a passcode guess, the file system.
public struct DeviceEnvironment: Sendable {
  /// Rounds of the passcode's derivation in the keybags of new devices and passcodes.
  ///
  /// A chip takes some 80 ms for one guess; this many rounds of the simulated one cost a few milliseconds.
  public static let standardPasscodeRounds: UInt32 = 50_000

  /// The time, and how to wait.
  package var clock: DeviceClock
  /// The source of keys, identifiers and salts.
  package var random: any RandomSource
  /// The rounds that each guess at a passcode costs, in keybags made from now on.
  package var passcodeRounds: UInt32
  package var files: DeviceFiles
  /// Shared by all copies of this environment.
  let surroundings = DeviceSurroundings()

  /// Creates an environment of the real file system.
  public init(
    clock: DeviceClock = .system, random: any RandomSource = SystemRandomSource(),
    passcodeRounds: UInt32 = Self.standardPasscodeRounds
  ) {
    self.clock = clock
    self.random = random
    self.passcodeRounds = passcodeRounds
    files = DeviceFiles()
  }

  /// Ends the derivation of a passcode's key where whoever waits for it no longer wants it.
  var derivation: PasswordDerivation.Progress {
    let shouldContinue = clock.shouldContinue
    return { _, _ in shouldContinue() }
  }

  /// The system's clock and randomness, and the standard cost of a passcode.
  public static var system: DeviceEnvironment { DeviceEnvironment() }
}

/// Who is around the devices of one environment, by the directory of each: all sessions of a device share them.
final class DeviceSurroundings: Sendable {
  private struct Entry {
    let monitor = ProtectedDataMonitor()
    let person = AuthenticationResponder()
  }

  private let entries = Locked<[String: Entry]>([:])

  func monitor(of directory: String) -> ProtectedDataMonitor { entry(of: directory).monitor }
  func person(at directory: String) -> AuthenticationResponder { entry(of: directory).person }

  private func entry(of directory: String) -> Entry {
    entries.withLock { entries in
      if let entry = entries[directory] { return entry }
      let entry = Entry()
      entries[directory] = entry
      return entry
    }
  }
}

extension VirtualDevice {
  /// Tells of the device's locks and unlocks.
  package var protectedData: ProtectedDataMonitor { environment.surroundings.monitor(of: directory) }
  /// Who answers when an item asks for a person.
  package var person: AuthenticationResponder { environment.surroundings.person(at: directory) }
}
