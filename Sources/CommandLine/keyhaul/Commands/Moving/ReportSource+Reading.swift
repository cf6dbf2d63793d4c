import KeyhaulKit
import Reports

extension ReportSource {
  /// Creates the source for a report on a backup.
  ///
  /// - Parameter fileList: The backup's files, whose domains name the apps if no property list does.
  init(_ loaded: LoadedBackup, fileList: FileList? = nil) {
    let apps = InstalledApps.directory(of: loaded.archive) {
      (try? fileList?.listing().rowCountByDomain.keys.sorted()) ?? []
    }
    self.init(loaded.archive, name: loaded.name, apps: apps)
  }

  init(_ loaded: LoadedBackup, namesFrom opened: BackupUnlocker.BackupForDevice) {
    self.init(loaded, fileList: opened.backup.fileList)
    let archive = opened.backup
    findings = archive.findings
    lostKinds = archive.items.filter { archive.reason(of: $0)?.isDamage == true }.map(\.kind)
    // Without Status.plist, nothing shows that anything is missing.
    mayLackItems = archive.damage.contains { $0 != .statusMissing && $0 != .finding(.stateMissing) }
    nameDecryptingDevice = opened.backup.encryptedItemSummaries.isEmpty ? nil : opened.sourceDevice
  }

  /// Creates the source for a report on a device, as if it had been backed up.
  ///
  /// - Parameter hasPassword: Whether that backup would have a password.
  init(_ session: DeviceSession, hasPassword: Bool) throws(CommandError) {
    do throws(DataProtectionError) {
      try self.init(of: session, hasPassword: hasPassword)
    } catch {
      throw CommandError(error, doing: "cannot plan for \(session.name)")
    }
  }
}

/// A file of expectations (format `plan-expectations/1`).
enum ExpectationFile {
  /// The maximum size in bytes: more than anyone writes by hand.
  static let maximumByteCount = 16 << 20

  static func bytes(of path: String, in session: Session) throws(CommandError) -> [UInt8] {
    try InputFile.read(path, atMost: maximumByteCount, what: "the expectations", in: session)
  }

  static func read(_ path: String, in session: Session) throws(CommandError) -> [PlanExpectation] {
    let bytes = try bytes(of: path, in: session)
    do throws(KeyhaulError) {
      return try PlanExpectations(parsing: bytes).expectations
    } catch {
      throw .usage("\(InputFile.name(path)) is not a list of expectations", why: error.reason, try: error.advice)
    }
  }
}

extension PlanReport {
  /// Creates a report on a plan for a device in its current state.
  init(
    _ plan: MigrationPlan, of source: ReportSource, onto device: DeviceSession, isRedacted: Bool = false
  ) throws(CommandError) {
    do throws(KeyhaulError) {
      try self.init(plan, of: source, onto: device, made: device.environment.clock.now(), isRedacted: isRedacted)
    } catch {
      throw CommandError(error, device: device.name)
    }
  }

  /// Prints the plan as text. A warning that nothing moves comes first, on standard error.
  func print(in session: Session) throws(CommandError) {
    if let warning { session.warn(warning.message, why: warning.why, try: warning.advice) }
    let style = session.resultStyle
    for line in verdictLines(style: style) + heading(style: style) { try session.print(line) }
    try session.print()
    let text = text(showsAll: session.common.verbose > 0)
    for line in text.legend(style: style) { try session.print(line) }
    for line in text.lines(style: style) { try session.print(line) }
  }
}

extension PlanReport {
  /// Passes the document with its checksum to a closure, in portions. Equal plans have equal bytes.
  func forEachPortion(_ body: (UnsafeRawBufferPointer) throws(CommandError) -> Void) throws(CommandError) {
    try PlanFile.forEachPortion(
      of: document, translating: { CommandError($0, doing: "the plan cannot be written") }, body)
  }

  /// Writes the document as the result.
  func printDocument(in session: Session) throws(CommandError) {
    try forEachPortion(session.writePortion)
  }
}
