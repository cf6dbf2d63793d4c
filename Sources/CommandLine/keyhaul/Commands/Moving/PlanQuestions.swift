import KeyhaulKit
import Reports

extension PlanCommand {
  /// Refuses what cannot go together with a list of expectations, and what goes with nothing else.
  func checkExpectationFlags() throws(CommandFailure) {
    guard expect != nil else {
      guard common.isJUnit else { return }
      throw .usage(
        "--format junit needs --expect", why: "its tests come from a list of expectations", try: "--expect FILE")
    }
    if common.isHTML {
      throw .usage(
        "--expect and --format html cannot be used together", why: "the page shows the plan",
        try: "use only one of them")
    }
    if redact {
      throw .usage(
        "--redact and --expect cannot be used together", why: "an expectation uses names",
        try: "use only one of them")
    }
  }

  /// Holds a list against the plan, or with `--compare` against all four restores, and says what it came to.
  ///
  /// - Returns: Whether all that was checked is met.
  /// - Throws: `.usage` where nothing of the list is for this restore.
  func check(
    _ expectations: [PlanExpectation], _ outlook: Outlook, _ report: PlanReport, in session: Session
  ) throws(CommandFailure) -> Bool {
    let setting = ExpectedScenario(hasPassword: report.source.isEncrypted, onSameDevice: outlook.isSameDevice)
    let comparison = view == .compare ? try outlook.compare() : nil
    let check: ExpectationCheck
    do throws(KeyhaulError) {
      check = try session.computing { () throws(KeyhaulError) in
        if let comparison { return try ExpectationCheck(expectations, comparison) }
        return try ExpectationCheck(expectations, report.plan, in: setting)
      }
    } catch {
      throw CommandFailure(error, doing: "cannot check the expectations")
    }
    guard !check.cases.isEmpty else {
      throw .usage(
        "no expectation applies to this restore",
        why: "it is a restore \(ExpectationMessages.description(of: setting))",
        try: "--compare, which checks all four restores, or expectations without password and same_device")
    }
    let result = ExpectationReport(check, report)
    if common.isJUnit {
      func print() throws(CommandFailure) {
        if output == nil { try session.writeRaw(result.junit) } else { try session.say(result) }
      }
      try saveAndPrint("the results were saved", in: session, printing: print) { (portion) throws(CommandFailure) in
        try result.junit.withRawBytes(portion)
      }
    } else {
      try saveAndPrint(report, in: session) { () throws(CommandFailure) in try session.say(result) }
    }
    return check.isMet
  }
}

extension PlanCommand {
  /// Plans for a backup that the device of a dump or of a database would give, as far as either tells its items.
  func plan(
    _ found: FoundDump, onto target: FoundDevice?, sourceDevice: FoundDevice?, _ expectations: [PlanExpectation]?,
    in session: Session
  ) throws -> CommandStatus {
    guard sourceDevice == nil else {
      throw CommandFailure.usage(
        "--source is for backups only", why: "\(found.typed) is a \(found.noun), which does not name its source device",
        try: "leave --source out")
    }
    try found.refuse(unlocking)
    try found.refusePage(in: session)
    guard let target else {
      throw CommandFailure.usage(
        "a plan made from a \(found.noun) needs --to",
        why: "\(found.typed) does not name its source device, so Keyhaul cannot say what would be "
          + "lost", try: "--to DEVICE; keyhaul device create NAME makes one")
    }
    return try target.hold(.reading) { device in
      let plan: MigrationPlan
      do throws(KeyhaulError) {
        plan = try session.computing { () throws(KeyhaulError) in
          try Restorer.plan(
            found.dump, named: found.typed, hasPassword: !noPassword, onto: device, policy: move.policy)
        }
      } catch {
        throw CommandFailure(error, using: device.name)
      }
      let source = ReportSource(
        of: found.dump, name: found.typed, digest: found.digest, hasPassword: !noPassword)
      var report = try report(plan, of: source, onto: device, in: session)
      report.sourceArgument = found.typed
      if countsCodes(expectations, in: session) {
        let moving = plan.decisions.filter { $0.outcome.fate == .migrates }.map(\.index)
        let items = found.dump.entries.lazy.compactMap { entry in
          entry.index.flatMap { index in entry.item.map { (index: index, item: $0) } }
        }
        report.codes = OneTimePasswordOverview(
          items, moving: Set(moving), AuthenticatorAccounts(), names: source.apps)
      }
      let outlook = Outlook(report: report, word: found.typed, isSameDevice: nil) { () throws(CommandFailure) in
        throw .usage(
          "--compare and --audit do not work with a \(found.noun)", why: "it does not name its source device",
          try: "leave --compare or --audit out")
      }
      return try finish(outlook, expectations, isDamaged: false, in: session)
    }
  }
}

extension ArchiveUnlocker.OpenedForDevice {
  /// What a restore of it would do.
  ///
  /// - Parameters:
  ///   - indexes: The items to bring, by their places; `nil` for all.
  ///   - use: `.planning` where it is only looked at.
  func plan(
    onto target: RestoreTarget, policy: ExistingItemPolicy, only indexes: Set<Int>? = nil,
    for use: BackupPurpose = .restoring
  ) throws(CommandFailure) -> MigrationPlan {
    do throws(KeyhaulError) {
      return try Restorer.plan(archive, onto: target, policy: policy, only: indexes, for: use)
    } catch {
      throw CommandFailure(error, doing: "cannot plan for \(target.name)")
    }
  }
}
