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

  /// - Parameter phone: A phone with the passcode "1234", or without one if the state requires that.
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
    var targets: [(password: String?, state: Target.State, resident: String?)] = []
    for password in [TestSetup.password, nil] {
      for state in Target.State.allCases {
        // Removing the passcode would delete items.
        let residents = Self.fixtures + [nil] + (state == .withoutPasscode ? [] : ["source device"])
        targets += residents.map { (password, state, $0) }
      }
    }
    // With two policies and five phones, there are 540 combinations.
    #expect(targets.count == 54)
    let chosen = Cases.chosen(targets, quick: 10, seed: UInt64(Self.fixtures.firstIndex(of: fixture) ?? 0))
    for password in [TestSetup.password, nil] {
      let prepared = try BackupExporter.prepare(source, password: secret(password), rounds: 1)
      let (path, destination) = setup.destination("b\(password == nil)", .tar)
      _ = try prepared.write(to: destination)
      // The source device decrypts all items.
      let archived = try setup.open(path, password: password, on: source).items.compactMap(\.item)
      for (number, (_, state, resident)) in chosen.enumerated() where chosen[number].password == password {
        let target = try Target(phone(setup, resident, "target-\(number)", state, source: source), in: state)
        for policy in ExistingItemPolicy.allCases {
          try target.reset()
          try check(
            path, password, archived, onto: target, policy, setup, "\(resident ?? "empty"), \(state), \(policy)")
        }
        if resident != "source device" { target.session.invalidate() }
      }
    }
  }

  private func phone(
    _ setup: TestSetup, _ fixture: String?, _ name: String, _ state: Target.State, source: DeviceSession
  ) throws -> DeviceSession {
    if fixture == "source device" { return source }
    let passcode = state == .withoutPasscode ? "" : "1234"
    let session = try setup.phone(name, passcode: passcode).openTestSession()
    guard let fixture else { return session }
    let model = try setup.bundled(fixture, named: "model-\(name)").openTestSession(.reading)
    defer { model.invalidate() }
    let items = try KeychainSnapshot(model).rows.compactMap(\.item)
    try session.insertUnchanged(
      items.filter { $0.protection != .whenPasscodeSetThisDeviceOnly || state != .withoutPasscode })
    return session
  }

  private func check(
    _ path: String, _ password: String?, _ archived: [KeychainItem], onto target: Target,
    _ policy: ExistingItemPolicy, _ setup: TestSetup, _ context: String
  ) throws {
    let session = target.session
    let before = try KeychainSnapshot(session)
    let archive = try setup.open(path, password: password, on: session)
    if [.locked, .beforeFirstUnlock].contains(target.state) {
      try target.enterState()
      let locked = try Restorer.plan(archive, onto: session, policy: policy)
      let error = try keyhaulError { try Restorer.restore(locked, onto: session) }
      #expect(error?.category == .locked, "\(context)")
      try target.unlock()
      #expect(
        try KeychainSnapshot(session).columnsOfRows == before.columnsOfRows, "\(context): a locked phone was changed")
      // The state of the target affects only the known names of removed items.
      let open = try Restorer.plan(archive, onto: session, policy: policy)
      #expect(locked.decisions.map(\.outcome.fate) == open.decisions.map(\.outcome.fate), "\(context)")
      #expect(locked.removed.count == open.removed.count, "\(context)")
    }
    let plan = try Restorer.plan(archive, onto: session, policy: policy)
    #expect(plan.decisions.count == archived.count)
    try Restorer.restore(plan, onto: session)
    let differences = PlanVerifier(plan, of: archived, before: before, after: try KeychainSnapshot(session)).differences
    #expect(differences.isEmpty, "\(context)")
    let comparison = MigrationComparison(of: archive, plan)
    #expect(comparison[comparison.current].arrives == plan.summary.migrates, "\(context)")
  }
}
