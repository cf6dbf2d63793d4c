import KeyhaulKit
import Reports

/// A plan with everything that its reports say about it: what is moved, the target, the words.
struct PlanReport {
  let plan: MigrationPlan
  let source: MoveSource
  let target: Target
  /// How many of the items that the target loses are nowhere else, as far as that is known.
  let removedOnlyCopies: Int
  /// The call that unlocks the target.
  var unlocking: String
  private let made: String
  /// The source and the target as they are called where nothing is redacted.
  private let named: (source: MoveSource, target: PlanDocument.Target)
  private let isRedacted: Bool

  struct Target {
    let name: String
    let state: DeviceState
    let isPasscodeSet: Bool
    let itemCount: Int
    /// Whether there is no such device, and one is only thought of.
    var isImagined = false
  }

  init(
    _ plan: MigrationPlan, of source: MoveSource, onto session: DeviceSession, made: KeychainDate,
    isRedacted: Bool = false
  ) throws(CommandFailure) {
    let itemCount: Int
    do throws(VirtualDeviceError) {
      itemCount = try session.itemCount
    } catch {
      throw CommandFailure(error, device: session.name)
    }
    let target = PlanDocument.Target(
      name: session.name, sameDevice: plan.isSameDevice,
      claimsSameDevice: source.document.device == session.record.udid, state: session.state.rawValue,
      passcodeSet: session.isPasscodeSet, items: itemCount, revision: session.record.revision)
    self.init(plan, of: source, onto: target, session.state, made: made, isRedacted: isRedacted)
  }

  /// A plan for a device that nobody has yet: empty, unlocked, with a passcode.
  init(_ plan: MigrationPlan, of source: MoveSource, ontoNew name: String, made: KeychainDate) {
    let target = PlanDocument.Target(
      name: name, sameDevice: false, claimsSameDevice: false, state: DeviceState.unlocked.rawValue, passcodeSet: true,
      items: 0, revision: "r0", isImagined: true)
    self.init(plan, of: source, onto: target, .unlocked, made: made, isRedacted: false)
  }

  private init(
    _ plan: MigrationPlan, of source: MoveSource, onto target: PlanDocument.Target, _ state: DeviceState,
    made: KeychainDate, isRedacted: Bool
  ) {
    self.plan = isRedacted ? plan.redacted : plan
    self.source = isRedacted ? source.redacted : source
    self.made = Timestamp.text(of: made)
    self.isRedacted = isRedacted
    named = (source, target)
    removedOnlyCopies = source.onlyCopies(removedBy: plan)
    self.target = Target(
      name: (isRedacted ? target.redacted : target).name, state: state, isPasscodeSet: target.passcodeSet,
      itemCount: target.items, isImagined: target.isImagined)
    unlocking = "keyhaul device unlock \(ShellWord.quoted(self.target.name))"
  }

  /// The plan as a document. Made again by each call: whoever reads text needs none.
  var document: PlanDocument {
    var document = PlanDocument(
      made: made, source: named.source.document, target: named.target, plan: plan,
      cannotShow: named.source.document.kind == .archive ? .unseenItems : nil,
      notInBackup: source.maker.map(PlanDocument.NotInBackup.init), dump: source.statement?.ofPlan,
      findings: named.source.findings)
    document.removedOnlyCopies = removedOnlyCopies
    return isRedacted ? document.redactingNames() : document
  }

  /// Why nobody carries out this very plan, as one sentence; `nil` if that can be done.
  var obstacle: String? {
    if source.obstacle != nil { return "This backup cannot be restored as it is." }
    if plan.onlyRemoves {
      return "It is only a report: carrying it out would remove items and restore none, which restore refuses."
    }
    // What has no name while the device is locked has one when it is restored to, which is another plan.
    if target.state != .unlocked, plan.removed.contains(where: \.isSealed) {
      return "It is only a report: unlock \(HostileText.shown(target.name)) and plan again to carry it out."
    }
    return nil
  }

  /// The target's when it was planned for, such as `r17`.
  var revision: String { named.target.revision }

  func text(showsAll: Bool) -> PlanText {
    PlanText(
      plan: plan, source: source, targetName: target.name, isTargetLocked: target.state != .unlocked,
      showsAll: showsAll)
  }

  /// The lines above the groups.
  func heading(style: TextStyle) -> [String] {
    let policy =
      switch plan.policy {
      case .replace: "replace, as iOS does (--existing replace)"
      case .merge: "merge; the newer item is kept (--existing merge)"
      }
    let state =
      switch target.state {
      case .unlocked: "unlocked"
      case .locked: "locked"
      case .beforeFirstUnlock: "before first unlock"
      }
    var parts = [
      ("", "Plan: \(source.name) → \(target.name)\(relation)"), ("  ", sourceLine),
      (
        "  ",
        "\(target.name): \(state), passcode \(target.isPasscodeSet ? "set" : "not set"), "
          + Amounts.count(target.itemCount, "item")
      ),
      ("  ", target.isImagined ? "no such device exists here; the plan assumes one" : "existing items: \(policy)"),
    ]
    if target.state != .unlocked {
      parts.append(
        ("  ", "before a restore, unlock \(target.name): \(unlocking)"))
    }
    if let obstacle = source.obstacle { parts.append(("  ", obstacle)) }
    if let device = source.namesFrom {
      parts.append(("  ", "this-device-only items: names decrypted with the hardware key of \(device)"))
    }
    return parts.flatMap { indent, text in
      WordWrap.labeled(indent, style.adapted(HostileText.shown(text)), columns: style.width)
    }
  }

  private var sourceLine: String {
    let count = Amounts.count(plan.decisions.count, "item")
    guard source.isDevice || source.statement != nil else {
      let made = source.made.map { "made \(TimeText.local($0)) by " } ?? "made by "
      return "\(made)\(source.sourceDevice) · \(source.protection) · \(count)"
    }
    let password = source.isEncrypted ? "with a password (--no-password: without)" : "without a password"
    let made = source.isDevice ? "as backed up now" : "as if \(source.sourceDevice) were backed up"
    return "\(made) \(password) · \(count)"
  }

  private var relation: String {
    if target.isImagined { return "" }
    return switch plan.isSameDevice {
    case true?: " (the same device)"
    case false?: " (another device)"
    // Where no item needs the hardware, nothing depends on it either.
    case nil: plan.staysForHardware ? " (not proven to be the same device)" : ""
    }
  }

  /// Says it before everything else where a backup without a password cannot go to this device.
  var warning: (message: String, why: String, advice: String)? {
    let stays = plan.summary.byReason[.backupNotEncrypted, default: 0]
    guard stays > 0, plan.summary.migrates == 0 else { return nil }
    return (
      "no item in \(source.name) can move to \(target.name)",
      "a backup without a password can be decrypted only on \(source.sourceDevice)",
      "make a new backup of \(source.sourceDevice) with a password"
    )
  }

  /// The document as bytes, with its checksum, in portions; equal plans are equal bytes.
  func forEachPortion(_ body: (UnsafeRawBufferPointer) throws(CommandFailure) -> Void) throws(CommandFailure) {
    try PlanFile.forEachPortion(
      of: document, translating: { CommandFailure($0, doing: "the plan cannot be written") }, body)
  }

  /// The same as the result.
  func sayDocument(in session: Session) throws(CommandFailure) {
    try forEachPortion(session.writePortion)
  }
}

extension MigrationPlan {
  /// Whether any item stays behind for want of hardware.
  fileprivate var staysForHardware: Bool {
    decisions.contains { [.deviceBound, .backupNotEncrypted].contains($0.outcome.reason) }
  }
}

extension PlanReport {
  /// The plan in text, on standard output; the warning that nothing moves goes first, to standard error.
  func say(in session: Session) throws(CommandFailure) {
    if let warning { session.warn(warning.message, why: warning.why, try: warning.advice) }
    let style = session.resultStyle
    for line in heading(style: style) { try session.say(line) }
    try session.say()
    let text = text(showsAll: session.common.verbose > 0)
    for line in text.legend(style: style) { try session.say(line) }
    for line in text.lines(style: style) { try session.say(line) }
  }
}

extension PlanReport {
  /// The plan as one HTML file.
  ///
  /// - Parameters:
  ///   - sourceArgument: What the person types for the source; `nil` if it came from a stream.
  ///   - targetArgument: The same for the target; `nil` if there is none.
  func page(from sourceArgument: String?, to targetArgument: String?) -> PlanPage {
    PlanPage(
      plan, as: document, apps: source.apps, maker: source.maker, sourceArgument: sourceArgument,
      targetArgument: targetArgument,
      program: ProgramVersion.signature)
  }
}

/// `plan --audit` (format `keychain-audit/1`): what a developer asks of the items that apps store.
struct AuditReport: Report {
  let audit: KeychainAudit
  let report: PlanReport

  func lines(style: TextStyle, showsAll: Bool) -> [String] {
    AuditText(audit, of: report.source).lines(style: style, showsAll: showsAll)
  }

  var json: JSONValue { AuditDocument(audit: audit, move: MoveDocument(report.document)).json }
}

/// `plan --compare` (format `migration-comparison/1`): what a backup with and one without a password bring back, to the
/// device that made it and to another.
struct ComparisonReport: Report {
  let comparison: MigrationComparison
  let report: PlanReport

  func lines(style: TextStyle, showsAll: Bool) -> [String] {
    ComparisonText(comparison, of: report.source, onto: report.target.name, showsAll: showsAll).lines(style: style)
  }

  var json: JSONValue { ComparisonDocument(comparison: comparison, move: MoveDocument(report.document)).json }
}

extension ComparisonReport {
  /// The four restores and the checklist as one HTML file.
  ///
  /// - Parameters:
  ///   - sourceArgument: What the person types for the source; `nil` if it came from a stream.
  ///   - targetArgument: The same for the target; `nil` if there is none.
  func page(from sourceArgument: String?, to targetArgument: String?) -> ComparisonPage {
    ComparisonPage(
      comparison, of: report.document, apps: report.source.apps, maker: report.source.maker,
      sourceArgument: sourceArgument,
      targetArgument: targetArgument, program: ProgramVersion.signature)
  }
}

/// A file of expectations (format `plan-expectations/1`).
enum ExpectationFile {
  /// More than anyone writes by hand, in bytes.
  static let maximumByteCount = 16 << 20

  static func read(_ path: String, in session: Session) throws(CommandFailure) -> [PlanExpectation] {
    let bytes = try InputFile.read(path, atMost: maximumByteCount, what: "the expectations", in: session)
    do throws(MigrationError) {
      return try PlanExpectations(parsing: bytes).expectations
    } catch {
      throw .usage("\(InputFile.name(path)) is not a list of expectations", why: error.reason, try: error.advice)
    }
  }
}

/// `plan --expect` (format `plan-expectation-result/1`): one line for each miss, and the count.
struct ExpectationReport: Report {
  let check: ExpectationCheck
  private let report: PlanReport
  private let words: ExpectationWords

  init(_ check: ExpectationCheck, _ report: PlanReport) {
    self.check = check
    self.report = report
    words = ExpectationWords(check, source: report.document.source)
  }

  func lines(style: TextStyle, showsAll: Bool) -> [String] {
    var lines = check.cases.flatMap { found in found.misses.map { words.line(of: $0, in: found.setting) } }
    if showsAll { lines += check.cases.filter(\.isMet).map(words.line(ofMet:)) }
    return lines.map { style.adapted(HostileText.shown($0)) } + report.source.unseenLines(style: style)
      + [words.verdict]
  }

  private var move: MoveDocument { MoveDocument(report.document) }

  var json: JSONValue { ExpectationDocument(check, move: move).json }
  var junit: [UInt8] { Array(ExpectationTestReport(check, move: move).xml.utf8) }
}

/// `plan --by-app` (format `migration-by-app/1`): the plan's items by the app they belong to.
struct AppReport: Report {
  let report: PlanReport

  private var shares: [AppShare] { report.plan.byApp(report.source.apps) }

  func lines(style: TextStyle, showsAll: Bool) -> [String] {
    var lines = report.heading(style: style) + [""]
    let text = report.text(showsAll: showsAll)
    let shares = shares
    lines += text.legend(style: style)
    for share in shares {
      let counts = [
        (share.migrates.count, "moves", "move"), (share.staysBehind.count, "stays", "stay"),
        (share.unreadable.count, "cannot be read", "cannot be read"),
      ].filter { $0.0 > 0 }.map { "\(Amounts.grouped($0.0)) \($0.0 == 1 ? $0.1 : $0.2)" }
      let name = HostileText.shown(share.app.words, columns: max(20, style.width - 34))
      let heads = WordWrap.labeled(
        style.adapted(name) + "  ", counts.joined(separator: ", "), columns: style.width)
      lines += heads.map { style.painted($0, .bold) }
      // What asks for something first.
      let decisions = share.unreadable + share.staysBehind + share.migrates
      let items = ReportItemTable(decisions, showsAll: showsAll) { decision in
        var row = text.row(decision)
        if let reason = decision.outcome.reason { row.protection = reason.rawValue }
        if decision.identity.isSealed { row.name = PlanText.sealedName(decision) }
        row.remark = ""
        return row
      }
      lines += items.lines(style: style) + [""]
    }
    lines += SignInAgain(shares: shares, targetName: report.target.name, showsAll: showsAll).lines(style: style)
    return lines + report.source.unseenLines(style: style)
      + WordWrap.lines(of: text.summaryLine, columns: style.width)
  }

  var json: JSONValue { ShareDocument(shares: shares, move: MoveDocument(report.document)).json }
}

extension MoveSource {
  init(_ named: NamedArchive) {
    self.init(
      named.archive, name: named.name, apps: AppDirectory(installed: InstalledApps.names(in: named.archive)))
  }

  init(_ named: NamedArchive, namesFrom opened: ArchiveUnlocker.OpenedForDevice) {
    self.init(named)
    let archive = opened.archive
    findings = archive.findings
    lostKinds = archive.items.filter { archive.reason(of: $0)?.isDamage == true }.map(\.kind)
    // Without Status.plist nothing says that anything is missing.
    mayLackItems = archive.damage.contains { $0 != .statusMissing && $0 != .finding(.stateMissing) }
    namesFrom = opened.archive.knownSealed.isEmpty ? nil : opened.maker
  }

  /// - Parameter hasPassword: Whether the backup that is thought of has one.
  init(_ session: DeviceSession, hasPassword: Bool) throws(CommandFailure) {
    do throws(DataProtectionError) {
      try self.init(of: session, hasPassword: hasPassword)
    } catch {
      throw CommandFailure(error, doing: "cannot plan for \(session.name)")
    }
  }
}
