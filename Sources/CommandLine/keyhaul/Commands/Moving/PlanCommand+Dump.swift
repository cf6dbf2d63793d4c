import KeyhaulKit
import Reports

/// `plan` for another tool's dump, or a keychain database.
extension PlanCommand {
  /// Plans the restore of a dump or a database, as if its items had been backed up.
  func planDump(
    _ dump: ResolvedDump, onto target: ResolvedDevice?, sourceDevice: ResolvedDevice?,
    _ expectations: [PlanExpectation]?, in session: Session
  ) throws -> CommandExitStatus {
    guard sourceDevice == nil else {
      throw CommandError.usage(
        "--source is for backups only", why: "\(dump.name) is a \(dump.noun), which does not name its source device",
        try: "leave --source out")
    }
    try dump.reject(accessOptions)
    try dump.rejectPage(in: session)
    guard let target else {
      throw CommandError.usage(
        "a plan made from a \(dump.noun) needs --to",
        why: "\(dump.name) does not name its source device, so Keyhaul cannot say what would be lost",
        try: "--to DEVICE; keyhaul device create NAME makes one")
    }
    return try target.withSession(.reading) { device in
      let report = try dumpReport(dump, onto: device, expectations, in: session)
      let comparable = ComparablePlan(report: report, argument: dump.name, isSameDevice: nil) {
        () throws(CommandError) in
        throw .usage(
          "--compare and --audit do not work with a \(dump.noun)", why: "it does not name its source device",
          try: "leave --compare or --audit out")
      }
      return try finish(comparable, expectations, isDamaged: false, in: session)
    }
  }

  /// Returns the report on a plan for a device.
  private func dumpReport(
    _ dump: ResolvedDump, onto device: DeviceSession, _ expectations: [PlanExpectation]?, in session: Session
  ) throws(CommandError) -> PlanReport {
    let plan: MigrationPlan
    do throws(KeyhaulError) {
      plan = try session.computing { () throws(KeyhaulError) in
        try Restorer.plan(
          dump.contents, named: dump.name, hasPassword: !noPassword, onto: device, policy: move.policy)
      }
    } catch {
      throw CommandError(error, using: device.name)
    }
    let source = ReportSource(of: dump.contents, name: dump.name, digest: dump.digest, hasPassword: !noPassword)
    var report = try makeReport(plan, of: source, onto: device, in: session)
    report.sourceArgument = dump.name
    if countsOneTimePasswords(expectations, in: session) {
      report.codes = Self.oneTimePasswords(in: dump, moving: plan, names: source.apps)
    }
    return report
  }

  /// Counts the one-time passwords in a dump. Unlike a backup, a dump contains no files of authenticator apps.
  private static func oneTimePasswords(
    in dump: ResolvedDump, moving plan: MigrationPlan, names: AppDirectory
  ) -> OneTimePasswordOverview {
    let movingIndexes = plan.decisions.filter { $0.outcome.fate == .migrates }.map(\.index)
    let numberedItems = dump.contents.entries.lazy.compactMap { entry in
      entry.index.flatMap { index in entry.item.map { (index: index, item: $0) } }
    }
    return OneTimePasswordOverview(
      numberedItems, moving: Set(movingIndexes), AuthenticatorAccounts(), names: names)
  }
}
