import Backups
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing
import VirtualDevice

@testable import KeyhaulKit

/// A target phone that is reset before each restore.
private struct Target {
  enum State: CaseIterable {
    case unlocked
    case locked
    case beforeFirstUnlock
    case withoutPasscode
  }

  let session: DeviceSession
  let state: State
  private let residents: [KeychainItem]

  /// - Parameter session: A session on a phone with the passcode "1234", or without one if the state requires that.
  init(_ session: DeviceSession, in state: State) throws {
    self.session = session
    self.state = state
    residents = try KeychainSnapshot(session).rows.compactMap(\.item)
  }

  func reset() throws {
    try KeychainSnapshot.empty(session.device)
    try session.insertUnchanged(residents)
  }

  /// Changes the phone from unlocked to its state.
  func enterState() throws {
    switch state {
    case .unlocked, .withoutPasscode: break
    case .locked: try session.lock()
    case .beforeFirstUnlock: try session.restart()
    }
  }

  func unlock() throws {
    if session.state != .unlocked { try session.unlock(passcode: Secret(utf8: "1234")) }
  }
}

@Suite("Restores between all bundled phones")
struct FixtureMatrixTests {
  private static let fixtures = ["old-phone", "new-phone", "hostile-names", "every-rule", "every-rule-target"]

  @Test(
    "Plan and restore agree for all bundled phones and states (540 combinations, 100 in a quick run)",
    arguments: fixtures)
  func matrix(_ fixture: String) throws {
    let setup = try TestSetup(seed: "matrix \(fixture)")
    let source = try setup.bundled(fixture, named: "source", passcode: "1234").openTestSession()
    // With two policies and five phones, there are 540 combinations.
    #expect(RestoreCase.all.count == 54)
    let chosen = Cases.chosen(RestoreCase.all, quick: 10, seed: UInt64(Self.fixtures.firstIndex(of: fixture) ?? 0))
    for password in [TestSetup.password, nil] {
      let backup = try backUp(source, password: password, in: setup)
      for (number, testCase) in chosen.enumerated() where testCase.password == password {
        let session = try phone("target-\(number)", for: testCase, in: setup, source: source)
        let target = try Target(session, in: testCase.state)
        for policy in ExistingItemPolicy.allCases {
          try target.reset()
          try check(
            backup, onto: target, policy: policy, in: setup,
            context: "\(testCase.residents), \(testCase.state), \(policy)")
        }
        if testCase.residents != .sourceDevice { session.invalidate() }
      }
    }
  }

  /// The backup and the target of a restore.
  private struct RestoreCase {
    /// The items on the target before the restore.
    enum Residents: Equatable {
      case empty
      case fixture(String)
      /// The target is the source device.
      case sourceDevice
    }

    let password: String?
    let state: Target.State
    let residents: Residents

    static let all: [RestoreCase] = [TestSetup.password, nil].flatMap { password in
      Target.State.allCases.flatMap { state -> [RestoreCase] in
        let fixtures = FixtureMatrixTests.fixtures.map { Residents.fixture($0) }
        // Removing the passcode would delete items.
        let residents: [Residents] = fixtures + [.empty] + (state == .withoutPasscode ? [] : [.sourceDevice])
        return residents.map { RestoreCase(password: password, state: state, residents: $0) }
      }
    }
  }

  private struct WrittenBackup {
    let path: String
    let password: String?
    let items: [KeychainItem]
  }

  private func backUp(_ source: DeviceSession, password: String?, in setup: TestSetup) throws -> WrittenBackup {
    let prepared = try BackupExporter.prepare(source, password: secret(password), rounds: 1)
    let (path, destination) = setup.destination("b\(password == nil)", .tar)
    _ = try prepared.write(to: destination)
    // The source device decrypts all items.
    let items = try setup.open(path, password: password, on: source).items.compactMap(\.item)
    return WrittenBackup(path: path, password: password, items: items)
  }

  /// Returns the target of a restore, with its items.
  private func phone(
    _ name: String, for testCase: RestoreCase, in setup: TestSetup, source: DeviceSession
  ) throws -> DeviceSession {
    if testCase.residents == .sourceDevice { return source }
    let hasPasscode = testCase.state != .withoutPasscode
    let session = try setup.phone(name, passcode: hasPasscode ? "1234" : "").openTestSession()
    guard case .fixture(let fixture) = testCase.residents else { return session }
    let model = try setup.bundled(fixture, named: "model-\(name)").openTestSession(.reading)
    defer { model.invalidate() }
    let items = try KeychainSnapshot(model).rows.compactMap(\.item)
    try session.insertUnchanged(items.filter { $0.protection != .whenPasscodeSetThisDeviceOnly || hasPasscode })
    return session
  }

  /// Plans and restores a backup, and compares the plan with the result.
  private func check(
    _ backup: WrittenBackup, onto target: Target, policy: ExistingItemPolicy, in setup: TestSetup, context: String
  ) throws {
    let session = target.session
    let before = try KeychainSnapshot(session)
    let decryptedBackup = try setup.open(backup.path, password: backup.password, on: session)
    if [.locked, .beforeFirstUnlock].contains(target.state) {
      try target.enterState()
      let lockedPlan = try Restorer.plan(decryptedBackup, onto: session, policy: policy)
      let error = try keyhaulError { try Restorer.restore(lockedPlan, onto: session) }
      #expect(error?.category == .locked, "\(context)")
      try target.unlock()
      #expect(
        try KeychainSnapshot(session).columnsOfRows == before.columnsOfRows, "\(context): a locked phone was changed")
      // The state of the target affects only the known names of removed items.
      let unlockedPlan = try Restorer.plan(decryptedBackup, onto: session, policy: policy)
      #expect(lockedPlan.decisions.map(\.outcome.fate) == unlockedPlan.decisions.map(\.outcome.fate), "\(context)")
      #expect(lockedPlan.removed.count == unlockedPlan.removed.count, "\(context)")
    }
    let plan = try Restorer.plan(decryptedBackup, onto: session, policy: policy)
    #expect(plan.decisions.count == backup.items.count)
    try Restorer.restore(plan, onto: session)
    let verifier = PlanVerifier(plan, of: backup.items, before: before, after: try KeychainSnapshot(session))
    #expect(verifier.differences.isEmpty, "\(context)")
    let comparison = MigrationComparison(of: decryptedBackup, plan)
    #expect(comparison[comparison.current].arrives == plan.summary.migrates, "\(context)")
  }
}
