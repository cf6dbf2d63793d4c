import KeyhaulKit
import Reports

extension PlanCommand {
  /// Rejects flags that cannot be combined with `--expect`, and `--format junit` without it.
  func checkExpectationFlags() throws(CommandError) {
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

  /// Checks the plan, or with `--compare` all four restores, against a list of expectations, and prints the result.
  ///
  /// - Returns: Whether all expectations that apply are met.
  /// - Throws: `.usage` if no expectation applies to this restore.
  func check(
    _ expectations: [PlanExpectation], _ comparable: ComparablePlan, _ report: PlanReport, in session: Session
  ) throws(CommandError) -> Bool {
    let scenario = ExpectedScenario(hasPassword: report.source.isEncrypted, onSameDevice: comparable.isSameDevice)
    let comparison = view == .compare ? try comparable.compare() : nil
    let check: ExpectationCheck
    do throws(KeyhaulError) {
      check = try session.computing { () throws(KeyhaulError) in
        if let comparison { return try ExpectationCheck(expectations, comparison) }
        return try ExpectationCheck(expectations, report.plan, in: scenario)
      }
    } catch {
      throw CommandError(error, doing: "cannot check the expectations")
    }
    guard !check.cases.isEmpty else {
      throw .usage(
        "no expectation applies to this restore",
        why: "it is a restore \(ExpectationMessages.description(of: scenario))",
        try: "--compare, which checks all four restores, or expectations without password and same_device")
    }
    let result = ExpectationReport(check, report)
    if common.isJUnit {
      func print() throws(CommandError) {
        if output == nil { try session.writeRaw(result.junit) } else { try session.print(result) }
      }
      try saveAndPrint("the results were saved", in: session, printing: print) { (portion) throws(CommandError) in
        try result.junit.withRawBytes(portion)
      }
    } else {
      try saveAndPrint(report, in: session) { () throws(CommandError) in try session.print(result) }
    }
    return check.isMet
  }
}

extension PlanCommand {
  /// Plans for a dump or database, as if its items had been backed up.
  func plan(
    _ found: ResolvedDump, onto target: ResolvedDevice?, sourceDevice: ResolvedDevice?,
    _ expectations: [PlanExpectation]?,
    in session: Session
  ) throws -> CommandExitStatus {
    guard sourceDevice == nil else {
      throw CommandError.usage(
        "--source is for backups only", why: "\(found.typed) is a \(found.noun), which does not name its source device",
        try: "leave --source out")
    }
    try found.reject(unlocking)
    try found.rejectPage(in: session)
    guard let target else {
      throw CommandError.usage(
        "a plan made from a \(found.noun) needs --to",
        why: "\(found.typed) does not name its source device, so Keyhaul cannot say what would be "
          + "lost", try: "--to DEVICE; keyhaul device create NAME makes one")
    }
    return try target.withSession(.reading) { device in
      let plan: MigrationPlan
      do throws(KeyhaulError) {
        plan = try session.computing { () throws(KeyhaulError) in
          try Restorer.plan(
            found.dump, named: found.typed, hasPassword: !noPassword, onto: device, policy: move.policy)
        }
      } catch {
        throw CommandError(error, using: device.name)
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
      let comparable = ComparablePlan(report: report, argument: found.typed, isSameDevice: nil) {
        () throws(CommandError) in
        throw .usage(
          "--compare and --audit do not work with a \(found.noun)", why: "it does not name its source device",
          try: "leave --compare or --audit out")
      }
      return try finish(comparable, expectations, isDamaged: false, in: session)
    }
  }
}

extension BackupUnlocker.BackupForDevice {
  /// Plans a restore of the backup.
  ///
  /// - Parameters:
  ///   - target: The target of the restore.
  ///   - policy: The treatment of the target's own items.
  ///   - indexes: The positions of the items to restore; `nil` if all are restored.
  ///   - use: The purpose: `.planning` if the restore is only shown.
  func plan(
    onto target: RestoreTarget, policy: ExistingItemPolicy, only indexes: Set<Int>? = nil,
    for use: BackupPurpose = .restoring
  ) throws(CommandError) -> MigrationPlan {
    do throws(KeyhaulError) {
      return try Restorer.plan(backup, onto: target, policy: policy, only: indexes, for: use)
    } catch {
      throw CommandError(error, doing: "cannot plan for \(target.name)")
    }
  }
}
