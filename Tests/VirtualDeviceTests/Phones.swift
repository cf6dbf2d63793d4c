import Basics
import Foundation
import KeychainCrypto
import KeychainFormats
import Keychains
import SystemPackage
import TestSupport

@testable import VirtualDevice

/// A folder of devices for a test, with cheap passcodes, repeatable randomness and a fixed clock.
struct Phones {
  static let now = KeychainDate(secondsSinceReferenceDate: 785_412_345.25)

  let directory: TemporaryDirectory
  let home: DeviceSet

  init(seed: String = "phones", files: DeviceFiles = DeviceFiles(), rounds: UInt32 = 3) throws {
    directory = try TemporaryDirectory()
    var environment = DeviceEnvironment(
      clock: .fixed(at: Self.now), random: SeededRandomSource(seed: seed), passcodeRounds: rounds)
    environment.files = files
    home = DeviceSet(path: directory.path("devices"), environment: environment)
  }

  func create(
    _ name: String, passcode: String, _ options: DeviceOptions
  ) throws -> VirtualDevice {
    try home.create(DeviceName(name), options, passcode: Secret(utf8: passcode))
  }

  func create(_ name: String = "phone", passcode: String = "1234") throws -> VirtualDevice {
    try create(name, passcode: passcode, DeviceOptions())
  }

  func create(_ name: String, _ options: DeviceOptions) throws -> VirtualDevice {
    try create(name, passcode: "1234", options)
  }

  func path(_ name: String) -> String { home.path + "/" + name }
}

extension VirtualDevice {
  /// Opens a session of the test, by default for changes.
  func openSession(_ access: DeviceAccess = .writing) throws -> DeviceSession { try openSession(access, verb: "test") }

  func read(_ file: DeviceFile) throws -> [UInt8] {
    try Array(Data(contentsOf: URL(fileURLWithPath: file.path(in: directory))))
  }

  func write(_ bytes: [UInt8], to file: DeviceFile) throws {
    try Data(bytes).write(to: URL(fileURLWithPath: file.path(in: directory)))
  }

  func has(_ file: DeviceFile) -> Bool { FileManager.default.fileExists(atPath: file.path(in: directory)) }

  /// Returns the device with another file system and a new random source.
  func using(_ files: DeviceFiles, seed: String = "again") -> VirtualDevice {
    var environment = environment
    environment.files = files
    environment.random = SeededRandomSource(seed: seed)
    return VirtualDevice(name: name, directory: directory, environment: environment)
  }
}

extension DeviceSession {
  func add(_ account: String, _ protection: ProtectionClass?, secret: String = "secret") throws {
    var item = KeychainItem(kind: .genericPassword)
    item[.service] = .string("tests")
    item[.account] = .string(account)
    item.protection = protection
    item.secret = SensitiveBytes(copying: Array(secret.utf8))
    try add(item)
  }

  /// Returns the secret of the item with an account, or `nil` if there is no such item.
  func secret(of account: String) throws -> String? {
    let found = try find(
      ItemQuery(kind: .genericPassword, attributes: [.account: .string(account)], wantsSecret: true))
    return found.items.first?.item.secret?.withBytes { String(decoding: $0, as: UTF8.self) }
  }

  /// Returns Apple's status for adding an item.
  func statusOfAdding(_ account: String, _ protection: ProtectionClass) throws -> SecItemStatus {
    try status { try add(account, protection) }
  }

  /// Returns Apple's status for reading an item.
  func statusOfReading(_ account: String) throws -> SecItemStatus {
    var isFound = false
    let status = try status { isFound = try secret(of: account) != nil }
    return status == .success && !isFound ? .itemNotFound : status
  }

  private func status(_ body: () throws -> Void) throws -> SecItemStatus {
    do {
      try body()
      return .success
    } catch let error as KeyhaulError {
      guard error.code.domain == .keychainStore else { throw error }
      return error.status
    }
  }

  func unlock(_ passcode: String) throws { try unlock(passcode: Secret(utf8: passcode)) }
}

/// Returns the code of the closure's error, or `nil` if it succeeds.
func code(_ body: () throws -> Void) throws -> KeyhaulError.Code? {
  do {
    try body()
    return nil
  } catch let error as KeyhaulError {
    return error.code
  }
}

/// Makes every changing file operation fail after a number of steps, as if the process had died there.
final class Faults: Sendable {
  private static let steps: Set<FileSystem.Call> = [
    .makeDirectory, .create, .write, .sync, .rename, .remove, .database,
  ]

  private struct State {
    var stepCount = 0
    var hasFailed = false
  }

  private let state = Locked(State())
  private let stepLimit: Int
  private let reason: Errno

  init(after stepLimit: Int = .max, _ reason: Errno = .ioError) {
    self.stepLimit = stepLimit
    self.reason = reason
  }

  /// File operations that fail after the number of steps.
  var files: DeviceFiles {
    DeviceFiles(
      FileSystem { call in
        guard Self.steps.contains(call) else { return nil }
        return self.state.withLock { state in
          guard state.stepCount < self.stepLimit else {
            state.hasFailed = true
            return .failure(self.reason)
          }
          state.stepCount += 1
          return nil
        }
      })
  }

  /// Whether a step has failed.
  var didFail: Bool { state.withLock { $0.hasFailed } }
  /// The number of steps that succeeded.
  var stepCount: Int { state.withLock { $0.stepCount } }
}
