import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul verify`: checks whether a backup is still as it was written.
struct Verify: CaseReportCommand {
  static let helpScreen = HelpScreen(
    sentence: "Check a backup's files, keys and items",
    usage: "keyhaul verify ARCHIVE|FOLDER... [--quick] [--sealed] [-o FILE]",
    examples: ["keyhaul verify family.backup", "keyhaul verify family.backup --quick"],
    flags: addingSharedRows(to: [
      "--quick", .init("--sealed", "exit with 3 if there is no seal"), "--password-file",
      .init("--device-key-file", "also check items that only their device can decrypt"),
      .init("-v", "list every fault"), .init("--output", "write the result to a file"), "--format",
    ]))
  static let configuration = makeConfiguration(named: "verify")
  static let formats: [OutputFormat] = [.text, .json, .ndjson, .csv]

  @Argument(
    help: ArgumentHelp(
      "The backup: a folder, a file, or - for a tar stream; or a keychain database. Several backups, or a folder of "
        + "them, get one result each.",
      valueName: "archive"),
    completion: .file())
  var paths: [String] = []
  @Flag(help: "Check what needs no password, and list what was not checked.") var quick = false
  @Flag(
    help: ArgumentHelp(
      "Exit with 3 if the backup has no seal.",
      discussion: "Someone who changes a backup can remove its seal. An older sealed backup of the same phone with the "
        + "same password passes too, because nothing in it shows that it is older than the backup it replaced."))
  var sealed = false
  @OptionGroup var report: ReportOptions
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @OptionGroup(title: "Opening the backup") var decryption: DecryptionOptions
  @OptionGroup var databaseKeys: DatabaseKeyOptions
  @OptionGroup(title: "Case report") var caseReport: CaseOptions
  @OptionGroup(title: "Many backups") var batchOptions: BatchOptions
  @OptionGroup var fieldOptions: FieldOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  /// Rejects flags that contradict each other.
  func checkFlags() throws(CommandError) {
    guard quick, accessOptions.password.isGiven else { return }
    throw .usage(
      "--quick and a password cannot be used together",
      why: "--quick checks only what needs no password",
      try: "use only one of them")
  }

  func runSingle(in session: Session) throws -> CommandExitStatus {
    try checkFlags()
    switch try SourceResolver(session, databaseKeys).backupOrDump(paths.first ?? "") {
    case .backup(let backup): return try verify(backup, in: session)
    case .dump(let dump): return try verify(dump, in: session)
    }
  }

  private func verify(_ backup: ResolvedBackup, in session: Session) throws(CommandError) -> CommandExitStatus {
    try self.report.prepare(inputs: backup.files + accessOptions.files, in: session)
    let report = try report(of: backup, in: session)
    try session.deliver(
      VerifyResult(json: report.json) { report.lines(style: $0, showsAll: $1).map { ($0.text, $0.color) } },
      to: self.report.output)
    printNotes(of: report, in: session)
    let status = status(of: report)
    guard session.isJSON else { return status }
    switch status {
    case .damaged:
      throw CommandError(.damaged, "\(report.name) is damaged", why: report.faultSummary, try: "use another copy")
    case .refused:
      throw CommandError(
        .refused, "\(report.name) contains something that no device writes", why: report.faultSummary,
        try: "don't trust this file")
    default: return status
    }
  }

  /// Prints the notes of a verification if `-v` was given. Notes about names and paths are always printed.
  private func printNotes(of report: VerificationReport, in session: Session) {
    let name = UntrustedText.escaped(report.name)
    for note in report.verification.notes {
      let text = "\(name): \(UntrustedText.escaped(note, keepingEscapes: true))"
      let isAboutNames = report.verification.findings.contains {
        [.listNamesNotUTF8, .payloadsRenamed].contains($0.kind) && $0.description == note
      }
      if isAboutNames { session.info(text) } else { session.debug(text) }
    }
  }

  /// Returns the exit status. It is `.partial` if the only problem is a missing seal that `--sealed` requires, or a device
  /// key that does not match.
  private func status(of report: VerificationReport) -> CommandExitStatus {
    let status = report.verification.status
    let isPartial =
      report.deviceKey?.decryptsAllBoundItems == false || sealed && report.verification.sealState == .missing
    return status == .ok && isPartial ? .partial : status
  }

  /// Checks a keychain database.
  private func verify(_ dump: ResolvedDump, in session: Session) throws(CommandError) -> CommandExitStatus {
    guard let database = dump.database else { throw dump.notABackupError }
    try dump.reject(accessOptions)
    if quick {
      throw .usage(
        "--quick applies only to backups", why: "\(dump.name) is checked in one step", try: "leave --quick out")
    }
    if sealed {
      throw .usage(
        "--sealed applies only to backups", why: "a keychain database has no seal", try: "leave --sealed out")
    }
    try report.prepare(inputs: dump.files, in: session)
    let verification = DatabaseVerification(database.database, opened: database.rows, named: dump.name)
    try session.deliver(
      VerifyResult(json: verification.json) { verification.lines(style: $0, showsAll: $1).map { ($0.text, $0.color) } },
      to: report.output)
    if session.isJSON, verification.isDamaged {
      throw CommandError(
        .damaged, "\(dump.name) is damaged", why: verification.failedCheckNames, try: "use another copy")
    }
    return verification.isDamaged ? .damaged : verification.isPartial ? .partial : .ok
  }

  private func report(of backup: ResolvedBackup, in session: Session) throws(CommandError) -> VerificationReport {
    let name = backup.name
    let location = try backup.location(in: session)
    let archive: BackupArchive
    do throws(KeyhaulError) {
      archive = try ResolvedBackup.read(at: location, storage: accessOptions.storage)
    } catch {
      guard error.category == .damaged else { throw CommandError(backup: error, name: name) }
      return VerificationReport(
        BackupVerification(unopened: error, isQuick: quick), of: name, device: nil, isQuickRequested: quick)
    }
    let loaded = LoadedBackup(name: name, archive: archive)
    session.backupMetadata = BackupMetadata(archive)
    backup.warnAboutExposedFiles(of: loaded, in: session)
    let (verification, deviceKey) = try verification(of: loaded, in: session)
    return VerificationReport(
      verification, of: name, device: archive.device.name, isQuickRequested: quick, deviceKey: deviceKey,
      requiresSeal: sealed)
  }

  // MARK: The checks

  /// Verifies a backup.
  ///
  /// - Returns: The verification, and the verdict on the given device key; `nil` if no device key was given or tried.
  private func verification(
    of loaded: LoadedBackup, in session: Session
  ) throws(CommandError) -> (verification: BackupVerification, deviceKey: DeviceKeyVerdict?) {
    if quick, loaded.archive.isEncrypted {
      if try accessOptions.decryption.deviceKeySource() != nil {
        throw .usage(
          "--quick and a device key cannot be used together",
          why: "without the password nothing in \(loaded.name) can be decrypted",
          try: "use only one of them")
      }
      return (try verification(of: loaded, with: nil, in: session), nil)
    }
    if try isCheckedWithoutPassword(loaded, in: session) {
      return (try verification(of: loaded, with: nil, in: session), nil)
    }
    return try verificationWithPassword(of: loaded, in: session)
  }

  /// Asks for the password, and verifies a backup with its class keys.
  private func verificationWithPassword(
    of loaded: LoadedBackup, in session: Session
  ) throws(CommandError) -> (verification: BackupVerification, deviceKey: DeviceKeyVerdict?) {
    let unlocker = BackupUnlocker(loaded, accessOptions.decryption, in: session)
    var triedKey = try unlocker.deviceKey()
    let isKeyGiven = triedKey?.isGuess == false
    let keys: ClassKeys?
    do throws(CommandError) {
      let key = try unlocker.key(accessOptions.password)
      if let fault = key.keybagFault {
        return (try verification(of: loaded, with: nil, keybagFault: fault, in: session), nil)
      }
      triedKey = unlocker.usableKey(triedKey, with: key)
      keys = try unlocker.classKeys(with: key, deviceKey: triedKey)
    } catch {
      // An unusable keybag is a finding, but a wrong password is an error.
      guard error.status == .damaged else { throw error }
      return (try verification(of: loaded, with: nil, keybagFault: error.why, in: session), nil)
    }
    let verification = try verification(of: loaded, with: keys, in: session)
    let evidence = verification.hardware
    let deviceKeyDecryptedItems = !evidence.proven.isEmpty
    if deviceKeyDecryptedItems { unlocker.reportDeviceKeySource(triedKey) }
    // Items that the key of a virtual device cannot decrypt stay unchecked.
    if let device = triedKey?.virtualDeviceName, evidence.isSameDevice == false {
      session.info(
        "\(UntrustedText.escaped(loaded.name)): the key of \(device) decrypts none of the items that need one")
    }
    guard isKeyGiven else { return (verification, nil) }
    return (verification, DeviceKeyVerdict(evidence, isForeign: unlocker.isGivenKeyOfOtherDevice))
  }

  /// Returns whether to check a decrypted copy without its password, because no password is available and Keyhaul cannot
  /// ask. The items of such a copy are then not checked.
  private func isCheckedWithoutPassword(_ loaded: LoadedBackup, in session: Session) throws(CommandError) -> Bool {
    guard loaded.archive.isEncrypted, !loaded.archive.areFilesEncrypted, session.terminal() == nil,
      session.availablePasswords.isEmpty
    else { return false }
    return try accessOptions.password.source(environment: session.environment) == .prompt
  }

  /// Verifies a backup with its class keys if they are available, and shows the progress.
  ///
  /// - Parameter keybagFault: The reason why a given password could not be tried; otherwise `nil`.
  private func verification(
    of loaded: LoadedBackup, with keys: ClassKeys?, keybagFault: String? = nil, in session: Session
  ) throws(CommandError) -> BackupVerification {
    do throws(KeyhaulError) {
      return try session.progress("Reading files", phase: "verify") { (report) throws(KeyhaulError) in
        try BackupVerification(
          loaded.archive, keys: keys, keybagFault: keybagFault, jobs: batchOptions.jobCount
        ) { done, total in
          report.update(done: Int(clamping: done), total: Int(clamping: total))
          return Interruption.pending == nil
        }
      }
    } catch {
      try Interruption.check()
      throw CommandError(backup: error, name: loaded.name)
    }
  }
}

/// The result of a verification, as a report.
private struct VerifyResult: Report {
  let json: JSONValue
  let makeLines: (_ style: TextStyle, _ showsAll: Bool) -> [(text: String, color: Color?)]

  func lines(style: TextStyle, showsAll: Bool) -> [String] {
    makeLines(style, showsAll).map { style.painted($0.text, $0.color) }
  }
}

extension BackupVerification {
  /// The exit status of `verify`. It is `.partial` if only payloads are missing, or if the backup may be unfinished.
  fileprivate var status: CommandExitStatus {
    if isHostile { return .refused }
    if isFaultless { return .ok }
    return isOnlyIncomplete || verdict == .unconfirmed ? .partial : .damaged
  }
}
