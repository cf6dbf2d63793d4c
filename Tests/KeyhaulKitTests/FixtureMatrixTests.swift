import Backups
import KeychainCrypto
import KeychainFormats
import TestSupport
import Testing
import VirtualDevice

@testable import KeyhaulKit

/// A phone that is planned for and restored to again and again, put back each time.
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

  /// - Parameter phone: With the passcode "1234", or none where the state says so.
  init(_ session: DeviceSession, in state: State) throws {
    self.session = session
    self.state = state
    residents = try HeldKeychain(session).rows.compactMap(\.item)
  }

  func reset() throws {
    try HeldKeychain.empty(session.device)
    try session.plant(residents)
  }

  /// Puts the phone into its state, from being unlocked.
  func enter() throws {
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

@Suite("Every bundled phone onto every other, in every state")
struct FixtureMatrix {
  private static let fixtures = ["old-phone", "new-phone", "hostile-names", "every-rule", "every-rule-target"]

  @Test(
    "what the plan says is what the file then holds, in 540 combinations, of which a quick run takes 100",
    arguments: fixtures)
  func matrix(_ fixture: String) throws {
    let desk = try Desk(seed: "matrix \(fixture)")
    let makers = try desk.bundled(fixture, named: "source", passcode: "1234").held()
    var targets: [(password: String?, state: Target.State, resident: String?)] = []
    for password in [Desk.password, nil] {
      for state in Target.State.allCases {
        // Taking its passcode away would destroy items of it.
        let residents = Self.fixtures + [nil] + (state == .withoutPasscode ? [] : ["itself"])
        targets += residents.map { (password, state, $0) }
      }
    }
    // With each policy and for five phones: 540.
    #expect(targets.count == 54)
    let chosen = Cases.chosen(targets, quick: 10, seed: UInt64(Self.fixtures.firstIndex(of: fixture) ?? 0))
    for password in [Desk.password, nil] {
      let prepared = try BackupExporter.prepare(makers, password: secret(password), rounds: 1)
      let (path, destination) = desk.destination("b\(password == nil)", .tar)
      _ = try prepared.write(to: destination)
      // What the maker opens is all there is.
      let archived = try desk.open(path, password: password, on: makers).items.compactMap(\.item)
      for (number, (_, state, resident)) in chosen.enumerated() where chosen[number].password == password {
        let target = try Target(phone(desk, resident, "target-\(number)", state, itself: makers), in: state)
        for policy in ExistingItemPolicy.allCases {
          try target.reset()
          try check(
            path, password, archived, onto: target, policy, desk, "\(resident ?? "empty"), \(state), \(policy)")
        }
        if resident != "itself" { target.session.invalidate() }
      }
    }
  }

  private func phone(
    _ desk: Desk, _ fixture: String?, _ name: String, _ state: Target.State, itself: DeviceSession
  ) throws -> DeviceSession {
    if fixture == "itself" { return itself }
    let passcode = state == .withoutPasscode ? "" : "1234"
    let session = try desk.phone(name, passcode: passcode).held()
    guard let fixture else { return session }
    let model = try desk.bundled(fixture, named: "model-\(name)").held(.reading)
    defer { model.invalidate() }
    let items = try HeldKeychain(model).rows.compactMap(\.item)
    try session.plant(items.filter { $0.protection != .whenPasscodeSetThisDeviceOnly || state != .withoutPasscode })
    return session
  }

  private func check(
    _ path: String, _ password: String?, _ archived: [KeychainItem], onto target: Target,
    _ policy: ExistingItemPolicy, _ desk: Desk, _ place: String
  ) throws {
    let session = target.session
    let before = try HeldKeychain(session)
    let archive = try desk.open(path, password: password, on: session)
    if [.locked, .beforeFirstUnlock].contains(target.state) {
      try target.enter()
      let locked = try Restorer.plan(archive, onto: session, policy: policy)
      let error = try migrationError { try Restorer.restore(locked, onto: session) }
      #expect(error?.category == .locked, "\(place)")
      try target.unlock()
      #expect(try HeldKeychain(session).image == before.image, "\(place): a locked phone was changed")
      // The keys of the target's items say nothing about what opens: only what is removed is less well known.
      let open = try Restorer.plan(archive, onto: session, policy: policy)
      #expect(locked.decisions.map(\.outcome.fate) == open.decisions.map(\.outcome.fate), "\(place)")
      #expect(locked.removed.count == open.removed.count, "\(place)")
    }
    let plan = try Restorer.plan(archive, onto: session, policy: policy)
    #expect(plan.decisions.count == archived.count)
    try Restorer.restore(plan, onto: session)
    let differences = PlanCheck(plan, of: archived, before: before, after: try HeldKeychain(session)).differences
    #expect(differences.isEmpty, "\(place)")
    let comparison = MigrationComparison(of: archive, plan)
    #expect(comparison[comparison.current].arrives == plan.summary.migrates, "\(place)")
  }
}
