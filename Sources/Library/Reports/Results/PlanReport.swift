package import KeyhaulKit

/// A plan with its source and its target, for all reports about it.
package struct PlanReport {
  package let plan: MigrationPlan
  package let source: ReportSource
  package let target: Target
  /// The number of removed items that may be the only intact copies of items that the backup has lost.
  package let removedOnlyCopyCount: Int
  /// The command that unlocks the target.
  package var unlockCommand: String
  /// The one-time passwords of the source; `nil` if they were not counted.
  package var codes: OneTimePasswordOverview?
  /// The source as a command-line argument; `nil` if it is a stream.
  package var sourceArgument: String?
  private let reportTime: String
  /// The source and the target with their names, even if the report is redacted.
  private let unredacted: (source: ReportSource, target: PlanDocument.Target)
  private let isRedacted: Bool

  /// The target of a plan.
  package struct Target {
    package let name: String
    package let state: DeviceState
    let isPasscodeSet: Bool
    let itemCount: Int
    /// Whether the device does not exist, and the plan only assumes it.
    var isHypothetical = false
    /// Whether the target is a Simulator's keychain, which has no lock and no passcode.
    package var isSimulator = false
  }

  package init(
    _ plan: MigrationPlan, of source: ReportSource, onto session: DeviceSession, made date: KeychainDate,
    isRedacted: Bool = false
  ) throws(KeyhaulError) {
    let itemCount = try session.itemCount
    let target = PlanDocument.Target(
      name: session.name, sameDevice: plan.isSameDevice,
      claimsSameDevice: source.document.device == session.record.udid, state: session.state.rawValue,
      isPasscodeSet: session.isPasscodeSet, itemCount: itemCount, revision: session.record.revision)
    self.init(plan, of: source, onto: target, in: session.state, made: date, isRedacted: isRedacted)
  }

  /// Creates the report of a plan for a new device, which is assumed to be empty, unlocked and protected by a passcode.
  package init(_ plan: MigrationPlan, of source: ReportSource, ontoNew name: String, made date: KeychainDate) {
    let target = PlanDocument.Target(
      name: name, sameDevice: false, claimsSameDevice: false, state: DeviceState.unlocked.rawValue, isPasscodeSet: true,
      itemCount: 0, revision: RestoreTarget.noRevision, isHypothetical: true)
    self.init(plan, of: source, onto: target, in: .unlocked, made: date, isRedacted: false)
  }

  /// Creates the report of a plan for a Simulator's keychain.
  package init(
    _ plan: MigrationPlan, of source: ReportSource, onto simulator: SimulatorTarget, made date: KeychainDate
  ) {
    let target = PlanDocument.Target(
      name: simulator.name, sameDevice: plan.isSameDevice, claimsSameDevice: false,
      state: DeviceState.unlocked.rawValue, isPasscodeSet: false, itemCount: simulator.itemCount,
      revision: RestoreTarget.simulator(simulator).revision)
    self.init(plan, of: source, onto: target, in: .unlocked, made: date, isRedacted: false, isSimulator: true)
  }

  private init(
    _ plan: MigrationPlan, of source: ReportSource, onto target: PlanDocument.Target, in state: DeviceState,
    made date: KeychainDate, isRedacted: Bool, isSimulator: Bool = false
  ) {
    self.plan = isRedacted ? plan.redacted : plan
    self.source = isRedacted ? source.redacted : source
    reportTime = Timestamp.text(of: date)
    self.isRedacted = isRedacted
    unredacted = (source, target)
    removedOnlyCopyCount = source.onlyCopies(removedBy: plan)
    self.target = Target(
      name: (isRedacted ? target.redacted : target).name, state: state, isPasscodeSet: target.isPasscodeSet,
      itemCount: target.itemCount, isHypothetical: target.isHypothetical, isSimulator: isSimulator)
    unlockCommand = "keyhaul device unlock \(ShellQuoting.quote(self.target.name))"
  }

  /// The plan as a document. It is created in each call, because text output does not need it.
  package var document: PlanDocument {
    var document = PlanDocument(
      planTime: reportTime, source: unredacted.source.document, target: unredacted.target, plan: plan,
      limitation: unredacted.source.document.kind == .archive ? .unseenItems : nil,
      notInBackup: source.sourceDeviceItems.map(PlanDocument.NotInBackup.init), dump: source.disclaimer?.planDocument,
      findings: unredacted.source.findings)
    document.removedOnlyCopyCount = removedOnlyCopyCount
    return isRedacted ? document.redactingNames() : document
  }

  /// The reason why this plan cannot be carried out, as one sentence; `nil` if the plan can be carried out.
  package var obstacle: String? {
    if source.obstacle != nil { return "This backup cannot be restored as it is." }
    if plan.onlyRemoves {
      return "It is only a report: it would remove items and restore none, so restore refuses to carry it out."
    }
    // The restore unlocks the device, which reveals names of items. The plan would then differ.
    if target.state != .unlocked, plan.removed.contains(where: \.isEncrypted) {
      return "It is only a report: unlock \(UntrustedText.escaped(target.name)) and plan again to carry it out."
    }
    return nil
  }

  /// The revision of the target when the plan was made, such as `r17`.
  package var revision: String { unredacted.target.revision }

  /// Returns the groups of the plan as text.
  package func text(showsAll: Bool) -> PlanText {
    var planText = PlanText(
      plan: plan, source: source, targetName: target.name, isTargetLocked: target.state != .unlocked,
      showsAll: showsAll)
    planText.codesEntry = codesEntry
    return planText
  }

  /// The step that saves the one-time passwords; `nil` if there are none.
  private var codesEntry: Checklist.Entry? {
    guard let sentence = codes?.checklistEntry(isRedacted: isRedacted, isRestorable: source.condition.isUsable) else {
      return nil
    }
    return Checklist.Entry(
      text: sentence, commands: sourceArgument == nil ? [] : [SuggestedCommands.qrCodes(of: placeholders.source)])
  }

  /// Returns the verdict, for the start of a report, and an empty line.
  package func verdictLines(style: TextStyle) -> [String] {
    func wrapped(_ text: String) -> [String] {
      WordWrap.lines(of: style.adapted(UntrustedText.escaped(text)), columns: style.width)
    }
    let conditionVerdict = source.condition.verdict(
      deviceNames: [HTMLWriter.shortened(source.sourceDevice), "the source device"])
    if let conditionVerdict {
      let advice =
        source.condition == .decryptedCopy
        ? "" : " What is wrong with it: \(SuggestedCommands.verify(placeholders.source))"
      return wrapped(conditionVerdict).map { style.painted($0, .bold) } + [""]
        + wrapped((itemsSentence ?? "") + advice) + [""]
    }
    let verdict = PlanVerdict(
      plan.summary, sourceIsBackup: source.isArchive, isSameDevice: plan.isSameDevice == true, target: target.name)
    return wrapped(verdict.text).map { style.painted($0, .bold) } + [""]
  }

  /// A sentence about the items of a backup that cannot be restored as it is; `nil` if the backup can be restored.
  private var itemsSentence: String? {
    let summary = plan.summary
    return source.condition.itemsSentence(
      count: summary.total, moving: summary.migrates, to: HTMLWriter.shortened(target.name),
      needsPassword: source.lacksPassword && summary.byReason[.backupNotEncrypted] != nil)
  }

  private var placeholders: CommandPlaceholders {
    CommandPlaceholders(unredacted.source.document, isRedacted: isRedacted, source: sourceArgument, target: nil)
  }

  /// Returns the lines above the groups: the source, the target and the policy.
  package func heading(style: TextStyle) -> [String] {
    let policyLine =
      target.isHypothetical ? "no such device exists here; the plan assumes one" : "existing items: \(policyText)"
    var details = [sourceLine, targetLine, policyLine]
    if target.state != .unlocked { details.append("before a restore, unlock \(target.name): \(unlockCommand)") }
    if let obstacle = source.obstacle { details.append(obstacle) }
    if let device = source.nameDecryptingDevice {
      details.append("this-device-only items: names decrypted with the device key of \(device)")
    }
    func labeled(_ label: String, _ text: String) -> [String] {
      WordWrap.labeled(label, style.adapted(UntrustedText.escaped(text)), columns: style.width)
    }
    return labeled("", "Plan: \(source.name) → \(target.name)\(relation)") + details.flatMap { labeled("  ", $0) }
  }

  private var policyText: String {
    switch plan.policy {
    case .replace: "replace, as iOS does (--existing replace)"
    case .merge: "merge; the newer item is kept (--existing merge)"
    }
  }

  /// The target with its state: "new-phone: unlocked, passcode set, 12 items".
  private var targetLine: String {
    let itemCount = HumanReadable.count(target.itemCount, "item")
    guard !target.isSimulator else { return "\(target.name): a Simulator's keychain, \(itemCount)" }
    let state =
      switch target.state {
      case .unlocked: "unlocked"
      case .locked: "locked"
      case .beforeFirstUnlock: "before first unlock"
      }
    return "\(target.name): \(state), passcode \(target.isPasscodeSet ? "set" : "not set"), \(itemCount)"
  }

  private var sourceLine: String {
    let count = HumanReadable.count(plan.decisions.count, "item")
    guard source.isDevice || source.disclaimer != nil else {
      let origin = source.backupDate.map { "made \(LocalTimeFormat.local($0)) by " } ?? "made by "
      return "\(origin)\(source.sourceDevice) · \(source.protection) · \(count)"
    }
    let password = source.isEncrypted ? "with a password (--no-password: without)" : "without a password"
    let simulation =
      source.isDevice ? "the virtual device as it is now, backed up" : "as if \(source.sourceDevice) were backed up"
    return "\(simulation) \(password) · \(count)"
  }

  private var relation: String {
    if target.isHypothetical { return "" }
    return switch plan.isSameDevice {
    case true?: " (the same device)"
    case false?: " (another device)"
    // If no item needs a device key, it does not matter whether the device is the same.
    case nil: plan.hasDeviceBoundItems ? " (not proven to be the same device)" : ""
    }
  }

  /// The warning that no item can move because the backup has no password. `nil` if an item can move, or if no item is
  /// held back by the missing password.
  package var warning: (message: String, why: String, advice: String)? {
    let stayingCount = plan.summary.byReason[.backupNotEncrypted, default: 0]
    guard stayingCount > 0, plan.summary.migrates == 0 else { return nil }
    return (
      "no item in \(source.name) can move to \(target.name)",
      "a backup without a password can be decrypted only on \(source.sourceDevice)",
      "make a new backup of \(source.sourceDevice) with a password: \(SuggestedCommands.explaining("backup-password"))"
    )
  }
}

extension MigrationPlan {
  /// Whether an item stays behind because it needs the source device's key.
  fileprivate var hasDeviceBoundItems: Bool {
    decisions.contains { [.deviceBound, .backupNotEncrypted].contains($0.outcome.reason) }
  }
}

extension PlanReport {
  /// Returns the plan as one HTML file.
  ///
  /// - Parameters:
  ///   - sourceArgument: The source as a command-line argument; `nil` if it came from a stream.
  ///   - targetArgument: The target as a command-line argument; `nil` if there is no such argument.
  ///   - program: The name and version that the page states.
  package func page(from sourceArgument: String?, to targetArgument: String?, program: String) -> PlanPage {
    var page = PlanPage(
      plan, as: document, apps: source.apps, sourceDeviceItems: source.sourceDeviceItems,
      sourceArgument: sourceArgument, targetArgument: targetArgument, program: program)
    page.condition = source.condition
    page.itemsSentence = itemsSentence
    page.codesStep = codesEntry.map { StepList.Step(text: $0.text, commands: $0.commands) }
    return page
  }
}

/// The report of `plan --compare` (format `migration-comparison/1`). It compares restores of a backup with and without
/// a password, to the source device and to another device.
package struct ComparisonReport: Report {
  package let comparison: MigrationComparison
  package let report: PlanReport

  package init(comparison: MigrationComparison, report: PlanReport) {
    self.comparison = comparison
    self.report = report
  }

  package func lines(style: TextStyle, showsAll: Bool) -> [String] {
    ComparisonText(comparison, of: report.source, onto: report.target.name, showsAll: showsAll).lines(style: style)
  }

  package var json: JSONValue { ComparisonDocument(comparison: comparison, move: MoveDocument(report.document)).json }
}

extension ComparisonReport {
  /// Returns the four restores and the checklist as one HTML file.
  ///
  /// - Parameters:
  ///   - sourceArgument: The source as a command-line argument; `nil` if it came from a stream.
  ///   - targetArgument: The target as a command-line argument; `nil` if there is no such argument.
  ///   - program: The program's name and version, for the page.
  package func page(from sourceArgument: String?, to targetArgument: String?, program: String) -> ComparisonPage {
    var page = ComparisonPage(
      comparison, of: report.document, apps: report.source.apps, sourceDeviceItems: report.source.sourceDeviceItems,
      sourceArgument: sourceArgument,
      targetArgument: targetArgument, program: program)
    page.condition = report.source.condition
    return page
  }
}

/// The report of `plan --expect` (format `plan-expectation-result/1`): a line for each unmet expectation, and the
/// counts.
package struct ExpectationReport: Report {
  package let check: ExpectationCheck
  private let report: PlanReport
  private let messages: ExpectationMessages

  package init(_ check: ExpectationCheck, _ report: PlanReport) {
    self.check = check
    self.report = report
    messages = ExpectationMessages(check, source: report.document.source)
  }

  package func lines(style: TextStyle, showsAll: Bool) -> [String] {
    var lines = check.cases.flatMap { checkedCase in
      checkedCase.unmet.map { messages.line(of: $0, in: checkedCase.scenario) }
    }
    if showsAll { lines += check.cases.filter(\.isMet).map(messages.line(ofMet:)) }
    return lines.map { style.adapted(UntrustedText.escaped($0)) } + report.source.blindSpotLines(style: style)
      + [messages.verdict]
  }

  private var move: MoveDocument { MoveDocument(report.document) }

  package var json: JSONValue { ExpectationDocument(check, move: move).json }
  /// The result as JUnit XML, in UTF-8.
  package var junit: [UInt8] { Array(ExpectationTestReport(check, move: move).xml.utf8) }
}
