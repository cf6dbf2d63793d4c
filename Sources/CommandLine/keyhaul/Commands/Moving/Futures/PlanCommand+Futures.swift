import KeyhaulKit
import Reports

/// `plan` without `--to`: what is lost on a new device, and on the same one once it was erased.
extension PlanCommand {
  /// Answers for a backup.
  func answer(
    for named: NamedArchive, _ opened: ArchiveUnlocker.OpenedForFutures, _ word: String?,
    _ expectations: [PlanExpectation]?, in session: Session
  ) throws -> CommandStatus {
    var source = ReportSource(named, fileList: opened.archive.fileList)
    source.findings = opened.archive.findings
    source.sourceDeviceItems = opened.restoreOutlook.sourceDeviceItems
    BackupDamageNotice(opened: opened.archive, name: named.name).warn(in: session)
    let question = Question(
      source: source, word: word, productType: named.archive.device.productType, hardware: opened.hardware,
      isDamaged: !opened.archive.damage.isEmpty, codes: opened.codes,
      condition: BackupCondition(damage: opened.archive.damage, findings: source.shownFindings))
    return try answer(question, opened.restoreOutlook, expectations, in: session)
  }

  /// Answers for a device, by a backup made of it now.
  func answer(
    for device: DeviceSession, _ word: String?, _ expectations: [PlanExpectation]?, in session: Session
  ) throws -> CommandStatus {
    let restoreOutlook: RestoreOutlook
    let simulatedBackup: SimulatedBackup
    do throws(KeyhaulError) {
      simulatedBackup = try SimulatedBackup(of: device, hasPassword: !noPassword)
      restoreOutlook = try RestoreOutlook(of: device, simulatedBackup)
    } catch {
      throw CommandFailure(error, using: device.name)
    }
    let question = Question(
      source: try ReportSource(device, hasPassword: !noPassword), word: word, productType: device.record.productType,
      hardware: device.name, isDamaged: false, codes: try FoundCodes(of: simulatedBackup, on: device))
    return try answer(question, restoreOutlook, expectations, in: session)
  }

  /// What is asked about.
  private struct Question {
    let source: ReportSource
    /// What a command says for it; `nil` for a stream.
    let word: String?
    let productType: String?
    let hardware: String?
    let isDamaged: Bool
    var codes: FoundCodes?
    /// Whether the backup can be restored as it is.
    var condition = BackupCondition.usable
  }

  private func answer(
    _ question: Question, _ restoreOutlook: RestoreOutlook, _ expectations: [PlanExpectation]?, in session: Session
  ) throws -> CommandStatus {
    let made = DeviceEnvironment.interruptible.clock.now()
    var facts = OutlookSummary(
      restoreOutlook, of: question.source.document, made: Timestamp.text(of: made), apps: question.source.apps,
      productType: question.productType, hardware: question.hardware, sourceArgument: question.word,
      isRedacted: redact)
    let source = redact ? question.source.redacted : question.source
    facts.findings = source.shownFindings
    facts.protection = source.nonstandardProtection
    facts.backupCondition = question.condition
    facts.codes = question.codes.map {
      $0.overview(moving: restoreOutlook.planForNewDevice, names: question.source.apps)
    }
    guard view == nil, expectations == nil else {
      let report = PlanReport(
        restoreOutlook.planForNewDevice, of: question.source, ontoNew: facts.newPhone, made: made)
      let outlook = Outlook(report: report, word: question.word, isSameDevice: false) { () throws(CommandFailure) in
        restoreOutlook.comparison
      }
      return try finish(outlook, expectations, isDamaged: question.isDamaged, in: session)
    }
    let report = OutlookReport(summary: facts)
    try session.deliver(report, page: report.page(program: ProgramVersion.signature), to: output)
    let counts = [true, false].map { restoreOutlook.counts(onSameDevice: $0) }
    if question.isDamaged || counts.contains(where: { $0.unreadable > 0 }) { return .partial }
    return exitCode && counts.contains { $0.lost > 0 } ? .differs : .ok
  }

  /// The device to restore to.
  ///
  /// - Throws: `.notFound` with how one is made, and that there is an answer without one.
  func target(_ name: String, _ finder: ArgumentFinder) throws(CommandFailure) -> FoundDevice {
    do throws(CommandFailure) {
      return try finder.device(name)
    } catch {
      guard error.status == .notFound, DeviceName.isValid(name) else { throw error }
      var failure = error
      let near = error.advice == "keyhaul device list" ? "" : "\(error.advice ?? ""), "
      failure.advice = "\(near)keyhaul device create \(name), or leave --to out to plan for a new device"
      throw failure
    }
  }
}

extension ArchiveUnlocker {
  /// The accounts in files of authenticator apps; none if the files cannot be read, which the plan does not depend on.
  private func accounts(with key: BackupKey) -> AuthenticatorAccounts {
    guard let items = try? archive.reader(with: key, for: .reading),
      let accounts = try? AuthenticatorAccounts(
        in: archive, items, installed: InstalledApps.names(in: archive).keys)
    else { return AuthenticatorAccounts() }
    return accounts
  }

  /// The one-time passwords of an opened archive.
  func codes(of opened: UnlockedBackup, with key: BackupKey) -> FoundCodes {
    FoundCodes(items: opened.items, accounts: accounts(with: key))
  }

  /// An archive opened for a new device and for its own one.
  struct OpenedForFutures {
    let archive: UnlockedBackup
    let restoreOutlook: RestoreOutlook
    /// Whose hardware key was tried; `nil` if none was.
    let hardware: String?
    let codes: FoundCodes
  }

  /// Opens the archive as a new device would, and as the device that made it where its hardware key is available: given by
  /// the user, or in a device.
  ///
  /// - Parameters:
  ///   - key: That of the password.
  ///   - hardware: The hardware key that the user gave, or one that may be the maker's.
  ///   - named: The device that the user says made it.
  func openForFutures(
    with key: BackupKey, _ hardware: HardwareKey?, sourceDevice named: DeviceSession?
  ) throws -> OpenedForFutures {
    let opened = try open(with: key, nil, for: .planning)
    let sourceDevice = try sourceDevice(of: opened, named: named, orTarget: nil, with: key)
    var (returning, name) = (sourceDevice?.returning, sourceDevice?.name)
    if let given = fitting(hardware, with: key), !given.isGuess {
      returning = try? archive.open(with: key, deviceKey: given.key, for: .planning)
      name = "the device whose key was given"
    }
    let codes = codes(of: returning ?? opened, with: key)
    do throws(KeyhaulError) {
      return OpenedForFutures(
        archive: opened,
        restoreOutlook: try RestoreOutlook(of: opened, returning: returning, sourceDeviceItems: sourceDevice?.items),
        hardware: name, codes: codes)
    } catch {
      throw CommandFailure(error, doing: "cannot plan for \(self.name)")
    }
  }
}
