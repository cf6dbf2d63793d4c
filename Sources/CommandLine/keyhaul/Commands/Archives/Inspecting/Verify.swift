import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul verify`: whether a backup is what was written.
struct Verify: BackupVerb {
  static let screen = HelpScreen(
    sentence: "Check a backup's files, keys and items",
    usage: "keyhaul verify ARCHIVE|FOLDER... [--quick] [--sealed] [-o FILE]",
    examples: ["keyhaul verify family.backup", "keyhaul verify family.backup --quick"],
    flags: [
      "--quick", .init("--sealed", "exit with 3 if there is no seal"), "--password-file",
      .init("--device-key-file", "also check items that only their device can decrypt"),
      .init("-v", "list every fault"), .init("--output", "write the result to a file"), "--format",
      .init("--paths-from", "read more paths from a file; - is standard input"),
      .init("--passwords", "a file that says where each backup's password is"),
      .init("--case", "with --examiner and -o, write a report for a case file"),
      .init("--resume", "skip backups whose results are already in this file"), "--json",
    ])
  static let configuration = described(as: "verify")
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
  @OptionGroup(title: "Opening the backup") var opening: OpeningOptions
  @OptionGroup var databaseKeys: DatabaseKeyOptions
  @OptionGroup(title: "Case report") var caseReport: CaseOptions
  @OptionGroup(title: "Many backups") var many: ManyBackupsOptions
  @OptionGroup var chosen: FieldOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  var unlocking: UnlockingOptions { UnlockingOptions(password: password, opening: opening) }

  /// Refuses flags that contradict each other, of whatever backup.
  func checkFlags() throws(CommandFailure) {
    guard quick, unlocking.password.isGiven else { return }
    throw .usage(
      "--quick and a password cannot be used together",
      why: "--quick checks only what needs no password",
      try: "use only one of them")
  }

  func performAlone(in session: Session) throws -> CommandStatus {
    try checkFlags()
    let source = try ArgumentFinder(session, databaseKeys).archiveOrDump(paths.first ?? "")
    try databaseKeys.check([source])
    let found: FoundArchive
    switch source {
    case .archive(let archive): found = archive
    case .dump(let dump): return try verify(dump, in: session)
    case .device(let device): throw FoundArchive.isDevice(device.name)
    }
    try self.report.prepare(inputs: found.files + unlocking.files, in: session)
    let report = try report(of: found, in: session)
    try session.deliver(
      VerifyResult(json: report.json) { report.lines(style: $0, showsAll: $1).map { ($0.text, $0.color) } },
      to: self.report.output)
    let name = UntrustedText.escaped(report.name)
    for note in report.verification.notes {
      let text = "\(name): \(UntrustedText.escaped(note, keepingEscapes: true))"
      // A row that is not as it should be is told of also where nothing is wrong with its file.
      let isOfNames = report.verification.found.contains {
        [.listNamesNotUTF8, .payloadsRenamed].contains($0.kind) && $0.description == note
      }
      if isOfNames { session.note(text) } else { session.detail(text) }
    }
    let status = status(of: report)
    guard session.isJSON else { return status }
    switch status {
    case .damaged:
      throw CommandFailure(.damaged, "\(report.name) is damaged", why: report.loss, try: "use another copy")
    case .refused:
      throw CommandFailure(
        .refused, "\(report.name) contains something that no device writes", why: report.loss,
        try: "don't trust "
          + "this file")
    default: return status
    }
  }

  /// Returns the command's status. The check is partial if its only problem is a missing seal or a device key that does
  /// not fit.
  private func status(of report: VerificationReport) -> CommandStatus {
    let status = report.verification.status
    let isPartial = report.deviceKey?.fits == false || sealed && report.verification.sealState == .missing
    return status == .ok && isPartial ? .partial : status
  }

  /// Checks a keychain's own database.
  private func verify(_ found: FoundDump, in session: Session) throws(CommandFailure) -> CommandStatus {
    guard let rows = found.database else { throw found.refusal }
    try found.refuse(unlocking)
    if quick {
      throw .usage(
        "--quick applies only to backups", why: "\(found.typed) is checked in one step", try: "leave --quick out")
    }
    if sealed {
      throw .usage(
        "--sealed applies only to backups", why: "a keychain database has no seal", try: "leave --sealed out")
    }
    try report.prepare(inputs: found.files, in: session)
    let verification = DatabaseVerification(rows.database, opened: rows.rows, named: found.typed)
    try session.deliver(
      VerifyResult(json: verification.json) { verification.lines(style: $0, showsAll: $1).map { ($0.text, $0.color) } },
      to: report.output)
    if session.isJSON, verification.isDamaged {
      throw CommandFailure(.damaged, "\(found.typed) is damaged", why: verification.loss, try: "use another copy")
    }
    return verification.isDamaged ? .damaged : verification.isPartial ? .partial : .ok
  }

  private func report(of found: FoundArchive, in session: Session) throws(CommandFailure) -> VerificationReport {
    let (location, name) = (try found.location(in: session), found.name)
    let opened: BackupArchive
    do throws(KeyhaulError) {
      opened = try FoundArchive.read(at: location, storage: unlocking.storage)
    } catch {
      guard error.category == .damaged else { throw CommandFailure(archive: error, name: name) }
      return VerificationReport(
        BackupVerification(unopened: error, isQuick: quick), of: name, device: nil, isQuickRequested: quick)
    }
    let named = NamedArchive(name: name, archive: opened)
    session.subject = SubjectFacts(opened)
    found.warnOfSurprises(of: named, in: session)
    let (verification, deviceKey) = try verification(of: named, in: session)
    return VerificationReport(
      verification, of: name, device: opened.device.name, isQuickRequested: quick, deviceKey: deviceKey,
      requiresSeal: sealed)
  }

  // MARK: The checks

  /// - Returns: The verification, and the items' evidence about the given device key; `nil` if no key was given or
  ///   tried.
  private func verification(
    of named: NamedArchive, in session: Session
  ) throws(CommandFailure) -> (BackupVerification, DeviceKeyVerdict?) {
    if quick, named.archive.isEncrypted {
      if try unlocking.opening.deviceKeySource() != nil {
        throw .usage(
          "--quick and a device key cannot be used together",
          why: "without the password nothing in \(named.name) can be decrypted",
          try: "use only one of them")
      }
      return (try verification(of: named, with: nil, nil, in: session), nil)
    }
    if try isLeftClosed(named, in: session) {
      return (try verification(of: named, with: nil, nil, in: session), nil)
    }
    // An item that the key of a virtual device does not open stays unchecked.
    let unlocker = ArchiveUnlocker(named, unlocking.opening, in: session)
    var hardware = try unlocker.hardwareKey()
    let isKeyGiven = hardware?.isGuess == false
    let keys: ClassKeys?
    do throws(CommandFailure) {
      let key = try unlocker.key(unlocking.password)
      if let fault = key.keybagFault { return (try verification(of: named, with: nil, fault, in: session), nil) }
      hardware = unlocker.fitting(hardware, with: key)
      keys = try unlocker.classKeys(with: key, hardware)
    } catch {
      // A keybag that cannot be used at all is a finding; a wrong password is not.
      guard error.status == .damaged else { throw error }
      return (try verification(of: named, with: nil, error.why, in: session), nil)
    }
    let verification = try verification(of: named, with: keys, nil, in: session)
    let proof = verification.hardware
    if !proof.proven.isEmpty { unlocker.tell(ofProven: hardware) }
    if let device = hardware?.homeDevice, proof.isSameDevice == false {
      session.note(
        "\(UntrustedText.escaped(named.name)): the key of \(device) decrypts none of the items that need one")
    }
    guard isKeyGiven else { return (verification, nil) }
    return (verification, DeviceKeyVerdict(proof, isForeign: unlocker.isGivenKeyForeign))
  }

  /// Whether nobody can be asked for the password of a decrypted copy: all but its items can be checked without.
  private func isLeftClosed(_ named: NamedArchive, in session: Session) throws(CommandFailure) -> Bool {
    guard named.archive.isEncrypted, !named.archive.areFilesEncrypted, session.terminal() == nil,
      session.offeredPasswords.isEmpty
    else { return false }
    return try unlocking.password.source(environment: session.environment) == .prompt
  }

  private func verification(
    of named: NamedArchive, with keys: ClassKeys?, _ keybagFault: String?, in session: Session
  ) throws(CommandFailure) -> BackupVerification {
    do throws(KeyhaulError) {
      return try session.progress("Reading files", phase: "verify") { (report) throws(KeyhaulError) in
        try BackupVerification(
          named.archive, keys: keys, keybagFault: keybagFault, jobs: many.jobCount
        ) { done, total in
          report.update(done: Int(clamping: done), total: Int(clamping: total))
          return Interruption.pending == nil
        }
      }
    } catch {
      try Interruption.check()
      throw CommandFailure(archive: error, name: named.name)
    }
  }
}

/// A verification as a report.
private struct VerifyResult: Report {
  let json: JSONValue
  let makeLines: (_ style: TextStyle, _ showsAll: Bool) -> [(text: String, color: Color?)]

  func lines(style: TextStyle, showsAll: Bool) -> [String] {
    makeLines(style, showsAll).map { style.painted($0.text, $0.color) }
  }
}

extension BackupVerification {
  /// How `verify` ends: missing payloads alone leave the rest safe.
  fileprivate var status: CommandStatus {
    if isHostile { return .refused }
    if isFaultless { return .ok }
    return isOnlyIncomplete || verdict == .unconfirmed ? .partial : .damaged
  }
}
