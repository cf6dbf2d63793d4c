import KeyhaulKit
import Reports

/// A restore into a Simulator's keychain: by the rules of a device that did not make the backup.
struct SimulatorRestore {
  private let verb: Restore
  private let simulator: FoundSimulator

  init(_ verb: Restore, onto found: FoundDump) throws(CommandFailure) {
    self.verb = verb
    simulator = try FoundSimulator(found)
  }

  func perform(in session: Session) throws -> CommandStatus {
    try refuseFlags()
    let selection = try verb.only.map { path throws(CommandFailure) in try RestoreSelection(path, in: session) }
    let named = try ArgumentFinder(session).archive(verb.archive)
      .open(storage: verb.unlocking.storage, for: .restoring, in: session)
    let unlocker = ArchiveUnlocker(named, verb.opening, in: session)
    let opened = try unlocker.open(with: try unlocker.key(verb.password), nil, for: .restoring)
    unlocker.tellOfMissingSeal()
    let plan = try plan(for: opened, nil)
    try selection?.check(against: plan, named, in: session)
    let chosen = try selection.map { try self.plan(for: opened, $0.indexes) } ?? plan
    try refusePointless(chosen, named)
    if verb.dryRun.isOn {
      try session.announce(words(of: chosen, "Would restore"))
      try say(chosen, named, in: session)
      session.note("Nothing was changed (--dry-run).")
    } else {
      session.note(SimulatorNote.untried)
      try session.confirm(question(chosen), refusal: "restoring to \(simulator.name)")
      try restore(chosen, in: session)
      try session.announce(words(of: chosen, "Restored"))
      try say(chosen, named, in: session)
    }
    return chosen.summary.unreadable > 0 || !opened.damage.isEmpty ? .partial : .ok
  }

  /// What is about devices, and what asks for more than a restore of a whole backup.
  private func refuseFlags() throws(CommandFailure) {
    let given = [
      verb.plan.map { _ in "--plan" }, verb.acceptDamage ? "--accept-damage" : nil,
      try verb.opening.deviceKeySource().map { _ in "a hardware key" },
    ]
    guard let flag = given.compactMap(\.self).first else { return }
    throw .usage(
      "\(flag) applies only to devices", why: "\(simulator.name) is a Simulator's keychain, which no hardware protects",
      try: "leave it out")
  }

  private func plan(for opened: OpenedArchive, _ indexes: Set<Int>?) throws(CommandFailure) -> MigrationPlan {
    do throws(KeychainRuleError) {
      return SimulatorRestorer.plan(
        opened, onto: try SimulatorRestorer.rows(of: simulator.rows), policy: verb.move.policy, only: indexes)
    } catch {
      throw CommandFailure(.damaged, "cannot restore to \(simulator.name)", why: error.reason)
    }
  }

  /// A restore that would only remove helps nobody.
  private func refusePointless(_ plan: MigrationPlan, _ named: NamedArchive) throws(CommandFailure) {
    guard plan.onlyRemoves || plan.decisions.isEmpty && !plan.removed.isEmpty else { return }
    throw CommandFailure(
      .refused, "no item of \(named.name) would be restored to \(simulator.name), so nothing was removed from it",
      why: "the restore would restore no item and remove \(Amounts.grouped(plan.removed.count))",
      try: "keyhaul plan \(ShellWord.quoted(named.name)) shows why")
  }

  private func restore(_ plan: MigrationPlan, in session: Session) throws(CommandFailure) {
    let done = DoneChange(
      RestoreEnd(plan, device: simulator.name).clause,
      look: "keyhaul inspect \(ShellWord.quoted(simulator.name)) --list")
    try simulator.change(done, in: session) { (keychain) throws(KeychainDatabaseError) in
      try SimulatorRestorer.restore(plan, onto: simulator.rows, in: keychain)
    }
  }

  // MARK: What is said

  private func question(_ plan: MigrationPlan) -> String {
    let end = RestoreEnd(plan, device: simulator.name)
    let removed = plan.summary.removed
    let loss = removed == 0 ? "" : ", and remove \(Amounts.grouped(removed)) of its own"
    return "Restore \(Amounts.count(end.restored, "item")) to \(simulator.name)\(loss)?"
  }

  /// "Restored 12 items to UDID; 3 of its own removed, 2 stayed behind."
  private func words(of plan: MigrationPlan, _ verb: String) -> String {
    let summary = plan.summary
    let parts = [
      (summary.removed, "of its own removed"), (summary.staysBehind, "left behind"),
      (summary.unreadable, "not readable"),
    ].filter { $0.0 > 0 }.map { "\(Amounts.grouped($0.0)) \($0.1)" }
    let restored = RestoreEnd(plan, device: simulator.name).restored
    let head = "\(verb) \(Amounts.count(restored, "item")) to \(HostileText.shown(simulator.name))"
    return parts.isEmpty ? head + "." : "\(head); \(parts.joined(separator: ", "))."
  }

  private func say(_ plan: MigrationPlan, _ named: NamedArchive, in session: Session) throws(CommandFailure) {
    let summary = plan.summary
    if session.isJSON {
      let changes = summary.byChange
      return try session.answer(
        simulator.document(
          "restore",
          [
            ("source", .string(named.name)), ("items", .count(summary.total)),
            ("added", .count(changes[.new, default: 0])), ("replaced", .count(changes[.replaces, default: 0])),
            ("kept", .count(changes[.keepsExisting, default: 0] + changes[.identical, default: 0])),
            ("removed", .count(summary.removed)), ("stays_behind", .count(summary.staysBehind)),
            ("unreadable", .count(summary.unreadable)),
          ], isDryRun: verb.dryRun.isOn))
    }
    for reason in Reason.allCases {
      guard let count = summary.byReason[reason] else { continue }
      session.note("\(Amounts.count(count, "item")) \(reason.rawValue): \(reason.explanation.headline).")
    }
  }
}
