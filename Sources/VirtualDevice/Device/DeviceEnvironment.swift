public import DataProtection

/// What a device takes from outside: time, randomness, the cost of a passcode guess, the file system.
public struct DeviceEnvironment: Sendable {
  /// Rounds of the passcode's derivation in the keybags of new devices and passcodes.
  ///
  /// A chip takes some 80 ms for one guess; this many rounds of the simulated one cost a few milliseconds.
  public static let standardPasscodeRounds: UInt32 = 50_000

  public var clock: DeviceClock
  public var random: any RandomSource
  public var passcodeRounds: UInt32
  package var files: FileDoor
  /// Shared by all copies of this environment.
  let surroundings = DeviceSurroundings()

  public init(
    clock: DeviceClock = .system, random: any RandomSource = SystemRandomSource(),
    passcodeRounds: UInt32 = Self.standardPasscodeRounds
  ) {
    self.clock = clock
    self.random = random
    self.passcodeRounds = passcodeRounds
    files = FileDoor()
  }

  /// Ends the derivation of a passcode's key where whoever waits for it no longer wants it.
  var derivation: PasswordDerivation.Progress {
    let goesOn = clock.goesOn
    return { _, _ in goesOn() }
  }

  public static var system: DeviceEnvironment { DeviceEnvironment() }
}
