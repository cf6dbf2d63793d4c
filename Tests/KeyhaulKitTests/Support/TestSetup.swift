import Backups
import KeychainCrypto
import KeychainFormats
import KeychainRules
import Keychains
import KeyhaulKit
import TestSupport
import VirtualDevice

/// A device folder and a temporary folder for backups, with fast key derivation, seeded random numbers and a fixed clock.
struct TestSetup {
  static let now = KeychainDate(secondsSinceReferenceDate: 785_412_345.25)
  static let password = "correct horse battery staple"

  private let temporary: TemporaryDeviceSet
  /// The folder for backups.
  let directory: TemporaryDirectory
  let environment: DeviceEnvironment

  /// The devices.
  var home: DeviceSet { temporary.devices }

  init(seed: String = "desk") throws {
    environment = DeviceEnvironment(
      clock: .fixed(at: Self.now), random: SeededRandomSource(seed: seed), passcodeRounds: 2)
    temporary = try TemporaryDeviceSet(environment: environment)
    directory = try TemporaryDirectory()
  }

  /// Creates a phone.
  ///
  /// - Parameter passcode: The passcode; empty for a phone without one.
  func phone(
    _ name: String, passcode: String = "", ios: String = "18.1", syncing: Bool = false
  ) throws -> VirtualDevice {
    let identity = DeviceIdentity(productVersion: try ProductVersion(ios))
    return try home.create(
      DeviceName(name), DeviceOptions(identity: identity, isSyncing: syncing), passcode: Secret(utf8: passcode))
  }

  /// The ways in which a backup can be stored.
  enum Packaging: String, CaseIterable, Sendable { case directory, tar, zstandardTar, zip }

  func destination(_ name: String, _ packaging: Packaging) -> (path: String, BackupDestination) {
    switch packaging {
    case .directory: (directory.path(name), .directory(directory.path(name)))
    case .tar: (directory.path(name + ".tar"), .file(directory.path(name + ".tar"), .tar))
    case .zstandardTar: (directory.path(name + ".tar.zst"), .file(directory.path(name + ".tar.zst"), .zstandardTar))
    case .zip: (directory.path(name + ".zip"), .file(directory.path(name + ".zip"), .zip))
    }
  }

  /// Backs up a phone, and returns the path of the backup.
  @discardableResult
  func backUp(
    _ phone: VirtualDevice, password: String?, named name: String = "backup", as packaging: Packaging = .tar
  ) throws -> String {
    let session = try phone.openTestSession()
    defer { session.invalidate() }
    let prepared = try BackupExporter.prepare(session, password: secret(password), rounds: 1)
    let (path, destination) = destination(name, packaging)
    let outcome = try prepared.write(to: destination, replace: true, random: SeededRandomSource(seed: name))
    return outcome.path ?? path
  }

  /// Decrypts a backup with its password and a phone's device key.
  func open(_ path: String, password: String?, on session: DeviceSession?) throws -> UnlockedBackup {
    let archive = try BackupArchive.open(.path(path))
    return try archive.open(
      with: archive.unlock(password: secret(password)), deviceKey: try session?.deviceKey())
  }
}

/// Returns a secret with this text; `nil` if the text is `nil`.
func secret(_ text: String?) -> Secret? {
  if let text { Secret(utf8: text) } else { nil }
}

extension VirtualDevice {
  func openTestSession(_ access: DeviceAccess = .writing) throws -> DeviceSession {
    try openSession(access, verb: "test")
  }
}

extension DeviceSession {
  /// Inserts items as they are, without new dates, flags, UUIDs or references.
  func insertUnchanged(_ items: [KeychainItem]) throws {
    let store = try prepareItemChanges()
    let random = environment.random
    let preserved = try items.map { try IncomingItem(preserved: $0) }
    try store.restore { (transaction) throws(KeyhaulError) in
      for item in preserved { _ = try transaction.importItem(item, keys: classKeys, random: random) }
    }
  }

  func insertUnchanged(_ items: KeychainItem...) throws { try insertUnchanged(items) }

  /// Plans a restore and carries it out.
  @discardableResult
  func restore(
    _ unlocked: UnlockedBackup, policy: ExistingItemPolicy = .replace, only indexes: Set<Int>? = nil
  ) throws -> MigrationPlan {
    let plan = try Restorer.plan(unlocked, onto: self, policy: policy, only: indexes)
    try Restorer.restore(plan, onto: self)
    return plan
  }
}

/// Returns the `KeyhaulError` that a closure throws; `nil` if it throws no error.
func keyhaulError(_ body: () throws -> Void) throws -> KeyhaulError? {
  do {
    try body()
    return nil
  } catch let error as KeyhaulError {
    return error
  }
}
