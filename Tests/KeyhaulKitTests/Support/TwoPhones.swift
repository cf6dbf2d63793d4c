import KeychainFormats
import Testing
import VirtualDevice

@testable import KeyhaulKit

/// Two phones. The old phone has an item of every class that a backup can contain.
struct TwoPhones {
  static let migratable: [ProtectionClass] = [.whenUnlocked, .afterFirstUnlock, .always]
  static let deviceOnly: [ProtectionClass] = [
    .whenUnlockedThisDeviceOnly, .afterFirstUnlockThisDeviceOnly, .alwaysThisDeviceOnly,
  ]

  let setup: TestSetup
  let old: VirtualDevice
  let new: VirtualDevice
  let tamperingWriter: TamperingWriter

  init(password: String? = TestSetup.password) throws {
    setup = try TestSetup(seed: "pretending")
    old = try setup.phone("old-phone", passcode: "123456")
    new = try setup.phone("new-phone", passcode: "654321")
    tamperingWriter = TamperingWriter(setup: setup, password: password)
    let session = try old.openTestSession()
    defer { session.invalidate() }
    try session.insertUnchanged((Self.migratable + Self.deviceOnly).map { .password($0.rawValue, $0) })
  }

  /// The outcomes of a restore by class, and the accounts that are then on the phone.
  struct RestoreResult: Equatable {
    var outcomes: [ProtectionClass: MigrationPlan.Outcome] = [:]
    var restoredAccounts: Set<String> = []
    var isSameDevice: Bool?
  }

  /// Restores a tampered backup to a phone with an empty keychain; by default, to the new phone.
  ///
  /// - Parameter password: The password, or `.some(nil)` to give none. `nil` means the password of the writer.
  func restore(_ path: String, onto phone: VirtualDevice? = nil, password: String?? = .none) throws -> RestoreResult {
    let session = try (phone ?? new).openTestSession()
    defer { session.invalidate() }
    try KeychainSnapshot.empty(session.device)
    let unlocked = try setup.open(path, password: password ?? tamperingWriter.password, on: session)
    let plan = try session.restore(unlocked)
    var result = RestoreResult(isSameDevice: plan.isSameDevice)
    let order = Self.migratable + Self.deviceOnly
    for decision in plan.decisions { result.outcomes[order[decision.index]] = decision.outcome }
    let snapshot = try KeychainSnapshot(session)
    result.restoredAccounts = Set(snapshot.items.compactMap { $0[.account]?.stringValue })
    // The plan and the file must agree.
    let planned = result.outcomes.filter { $0.value == .migrates(.new) }.map(\.key.rawValue)
    #expect(result.restoredAccounts == Set(planned))
    #expect(snapshot.items.count == planned.count)
    return result
  }

  static let deviceOnlyAccounts = Set(deviceOnly.map(\.rawValue))
  static let migratableAccounts = Set(migratable.map(\.rawValue))
}
