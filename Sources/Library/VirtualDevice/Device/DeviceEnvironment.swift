import Basics
public import KeychainCrypto

/// The environment of devices: clock, randomness, cost of a passcode attempt, and file system.
public struct DeviceEnvironment: Sendable {
  /// The key derivation iterations for the keybags of new devices and passcodes.
  ///
  /// A real chip needs about 80 ms for an attempt. This number takes a few milliseconds on a virtual device.
  public static let standardPasscodeRounds: UInt32 = 50_000

  /// The clock, which also waits.
  package var clock: DeviceClock
  /// The source of keys, identifiers and salts.
  package var random: any RandomSource
  /// The key derivation iterations in new keybags. Each passcode attempt requires them.
  package var passcodeRounds: UInt32
  package var files: DeviceFiles
  /// The users and observers of the devices. All copies of this environment share them.
  let context = DeviceContext()

  /// Creates an environment with the real file system.
  public init(
    clock: DeviceClock = .system, random: any RandomSource = SystemRandomSource(),
    passcodeRounds: UInt32 = Self.standardPasscodeRounds
  ) {
    self.clock = clock
    self.random = random
    self.passcodeRounds = passcodeRounds
    files = DeviceFiles()
  }

  /// A progress handler that stops the derivation of a passcode key if the caller no longer waits for it.
  var derivation: PasswordDerivation.Progress {
    let shouldContinue = clock.shouldContinue
    return { _, _ in shouldContinue() }
  }

  /// An environment with the system's clock and randomness, and the standard cost of a passcode attempt.
  public static var system: DeviceEnvironment { DeviceEnvironment() }
}

/// The state that all sessions of a device share: its user, and the observers of its locks and unlocks. A device is
/// identified by the path of its folder.
final class DeviceContext: Sendable {
  private struct Entry {
    let monitor = ProtectedDataMonitor()
    let user = AuthenticationResponder()
  }

  private let entries = Locked<[String: Entry]>([:])

  func monitor(of directory: String) -> ProtectedDataMonitor { entry(of: directory).monitor }
  func user(of directory: String) -> AuthenticationResponder { entry(of: directory).user }

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
  /// The monitor that reports locks and unlocks of the device.
  package var protectedData: ProtectedDataMonitor { environment.context.monitor(of: directory) }
  /// The user who answers authentication requests of the device.
  package var user: AuthenticationResponder { environment.context.user(of: directory) }
}
