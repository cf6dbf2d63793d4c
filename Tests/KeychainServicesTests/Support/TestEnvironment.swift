import Backups
import Foundation
import KeychainCrypto
import KeychainServices
import KeyhaulKit
import TestSupport
import Testing
import VirtualDevice

/// Creates phones with one app each, and backs them up to a temporary directory.
///
/// The phones share a test clock and derive passcode keys with few iterations.
struct TestEnvironment {
  static let app = "notes"
  static let passcode = "1234"
  static let password = "correct horse battery staple"

  let clock = TestClock()
  let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  @TaskLocal fileprivate static var ofCurrentTask: TestEnvironment?

  /// The environment of the current test.
  static var current: TestEnvironment {
    get throws { try #require(ofCurrentTask) }
  }

  /// Creates a phone with an app. With an empty passcode, the phone has none.
  func phone(passcode: String = Self.passcode, groups: [String] = ["team.notes", "team.shared"]) throws
    -> KeychainClient
  {
    let environment = DeviceEnvironment(clock: clock.deviceClock, passcodeRounds: 2)
    return try .onNewDevice(
      app: Self.app, accessGroups: groups, passcode: passcode, environment: environment)
  }

  /// Backs up a phone and returns the path of the backup.
  func backUp(_ phone: KeychainClient, password: String?) throws -> String {
    let session = try phone.device.openSession(.writing, verb: "backup")
    defer { session.invalidate() }
    let prepared = try BackupExporter.prepare(session, password: secret(password), rounds: 1)
    let path = directory.path("\(UUID().uuidString).tar")
    _ = try prepared.write(to: .file(path, .tar))
    return path
  }

  /// Replaces the items of a phone with the items of a backup.
  @discardableResult
  func restore(_ path: String, password: String?, onto phone: KeychainClient) throws -> MigrationPlan {
    let session = try phone.device.openSession(.writing, verb: "restore")
    defer { session.invalidate() }
    let backup = try BackupArchive.open(.path(path))
    let unlockedBackup = try backup.open(
      with: backup.unlock(password: secret(password)), deviceKey: try session.deviceKey())
    let plan = try Restorer.plan(unlockedBackup, onto: session, policy: .replace)
    try Restorer.restore(plan, onto: session)
    return plan
  }

  private func secret(_ text: String?) -> Secret? {
    if let text { Secret(utf8: text) } else { nil }
  }
}

extension KeychainClient {
  func unlock() throws { try unlock(passcode: TestEnvironment.passcode) }
  func setPasscode() throws { try setPasscode(TestEnvironment.passcode) }
  func removePasscode() throws { try removePasscode(TestEnvironment.passcode) }

  /// Runs the closure with this client for its keychain calls.
  func perform<Result>(_ body: () throws -> Result) rethrows -> Result { try DefaultKeychain.using(self, body) }

  /// Returns the number of items on the device, of all apps.
  func itemCount() throws -> Int {
    try withSession(.reading) { (session) throws(KeyhaulError) in try session.itemCount }
  }
}

/// Runs each test on a new phone with one app.
struct OnAPhone: SuiteTrait, TestTrait, TestScoping {
  let passcode: String
  var isRecursive: Bool { true }

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    let environment = try TestEnvironment()
    let phone = try environment.phone(passcode: passcode)
    try await TestEnvironment.$ofCurrentTask.withValue(environment) {
      try await DefaultKeychain.using(phone) { try await function() }
    }
  }
}

extension Trait where Self == OnAPhone {
  static var onAPhone: Self { onAPhone(passcode: TestEnvironment.passcode) }
  static func onAPhone(passcode: String) -> Self { OnAPhone(passcode: passcode) }
}
