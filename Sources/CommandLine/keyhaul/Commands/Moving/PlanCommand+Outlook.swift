import KeyhaulKit
import Reports

/// `plan` without `--to`: shows the losses of a restore to a new device, and to the source device after it was erased.
extension PlanCommand {
  /// Plans the restore of a backup.
  func planBackupWithoutTarget(
    _ loaded: LoadedBackup, _ opened: BackupUnlocker.BackupForOutlook, argument: String?,
    _ expectations: [PlanExpectation]?, in session: Session
  ) throws -> CommandExitStatus {
    var source = ReportSource(loaded, fileList: opened.backup.fileList)
    source.findings = opened.backup.findings
    source.sourceDeviceItems = opened.restoreOutlook.sourceDeviceItems
    BackupDamageNotice(opened: opened.backup, name: loaded.name).warn(in: session)
    let request = OutlookRequest(
      source: source, argument: argument, productType: loaded.archive.device.productType,
      deviceKeyOwner: opened.deviceKeyOwner, isDamaged: !opened.backup.damage.isEmpty,
      oneTimePasswords: opened.oneTimePasswords,
      condition: BackupCondition(damage: opened.backup.damage, findings: source.reportedFindings))
    return try finishWithoutTarget(request, opened.restoreOutlook, expectations, in: session)
  }

  /// Plans as if a backup of a device were made now and then restored.
  func planDeviceWithoutTarget(
    _ device: DeviceSession, argument: String?, _ expectations: [PlanExpectation]?, in session: Session
  ) throws -> CommandExitStatus {
    let restoreOutlook: RestoreOutlook
    let simulatedBackup: SimulatedBackup
    do throws(KeyhaulError) {
      simulatedBackup = try SimulatedBackup(of: device, hasPassword: !noPassword)
      restoreOutlook = try RestoreOutlook(of: device, simulatedBackup)
    } catch {
      throw CommandError(error, using: device.name)
    }
    let request = OutlookRequest(
      source: try ReportSource(device, hasPassword: !noPassword), argument: argument,
      productType: device.record.productType, deviceKeyOwner: device.name, isDamaged: false,
      oneTimePasswords: try OneTimePasswordSources(of: simulatedBackup, on: device))
    return try finishWithoutTarget(request, restoreOutlook, expectations, in: session)
  }

  /// The source for a plan without a target.
  private struct OutlookRequest {
    let source: ReportSource
    /// The argument that names the source in suggested commands; `nil` if the source is a stream.
    let argument: String?
    let productType: String?
    /// The device whose key was tried, as its name or "the device whose key was given"; `nil` if no key was tried.
    let deviceKeyOwner: String?
    let isDamaged: Bool
    var oneTimePasswords: OneTimePasswordSources?
    /// Whether the backup can be restored as it is.
    var condition = BackupCondition.usable
  }

  /// Delivers the plan for a new device and for the erased source device. If a view or a check of expectations was
  /// requested, delivers only that.
  private func finishWithoutTarget(
    _ request: OutlookRequest, _ restoreOutlook: RestoreOutlook, _ expectations: [PlanExpectation]?, in session: Session
  ) throws -> CommandExitStatus {
    let planDate = DeviceEnvironment.interruptible.clock.now()
    var summary = OutlookSummary(
      restoreOutlook, of: request.source.document, made: Timestamp.text(of: planDate), apps: request.source.apps,
      productType: request.productType, deviceKeyOwner: request.deviceKeyOwner, sourceArgument: request.argument,
      isRedacted: redact)
    let source = redact ? request.source.redacted : request.source
    summary.findings = source.reportedFindings
    summary.nonstandardProtection = source.nonstandardProtection
    summary.backupCondition = request.condition
    summary.codes = request.oneTimePasswords.map {
      $0.overview(for: restoreOutlook.planForNewDevice, names: request.source.apps)
    }
    guard view == nil, expectations == nil else {
      let report = PlanReport(
        restoreOutlook.planForNewDevice, of: request.source, ontoNew: summary.newPhone, made: planDate)
      let comparable = ComparablePlan(report: report, argument: request.argument, isSameDevice: false) {
        () throws(CommandError) in
        restoreOutlook.comparison
      }
      return try finish(comparable, expectations, isDamaged: request.isDamaged, in: session)
    }
    let report = OutlookReport(summary: summary)
    try session.deliver(report, page: report.page(program: ProgramVersion.signature), to: output)
    let counts = [true, false].map { restoreOutlook.counts(onSameDevice: $0) }
    if request.isDamaged || counts.contains(where: { $0.unreadable > 0 }) { return .partial }
    return exitCode && counts.contains { $0.lost > 0 } ? .differs : .ok
  }

  /// Finds the target device.
  ///
  /// - Throws: `.notFound` with advice to create the device or to plan without a target.
  func target(_ name: String, _ resolver: SourceResolver) throws(CommandError) -> ResolvedDevice {
    do throws(CommandError) {
      return try resolver.device(name)
    } catch {
      guard error.status == .notFound, DeviceName.isValid(name) else { throw error }
      var failure = error
      let resolverAdvice = error.advice == "keyhaul device list" ? "" : "\(error.advice ?? ""), "
      failure.advice = "\(resolverAdvice)keyhaul device create \(name), or leave --to out to plan for a new device"
      throw failure
    }
  }
}
