import KeyhaulKit
import Reports

extension ReportSource {
  /// - Parameter fileList: The backup's files, whose domains name the apps if no property list does.
  init(_ named: NamedArchive, fileList: FileList? = nil) {
    let apps = InstalledApps.directory(of: named.archive) {
      (try? fileList?.listing().rowCountByDomain.keys.sorted()) ?? []
    }
    self.init(named.archive, name: named.name, apps: apps)
  }

  init(_ named: NamedArchive, namesFrom opened: ArchiveUnlocker.OpenedForDevice) {
    self.init(named, fileList: opened.archive.fileList)
    let archive = opened.archive
    findings = archive.findings
    lostKinds = archive.items.filter { archive.reason(of: $0)?.isDamage == true }.map(\.kind)
    // Without Status.plist nothing says that anything is missing.
    mayLackItems = archive.damage.contains { $0 != .statusMissing && $0 != .finding(.stateMissing) }
    nameDecryptingDevice = opened.archive.encryptedItemSummaries.isEmpty ? nil : opened.sourceDevice
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

/// A file of expectations (format `plan-expectations/1`).
enum ExpectationFile {
  /// More than anyone writes by hand, in bytes.
  static let maximumByteCount = 16 << 20

  static func bytes(of path: String, in session: Session) throws(CommandFailure) -> [UInt8] {
    try InputFile.read(path, atMost: maximumByteCount, what: "the expectations", in: session)
  }

  static func read(_ path: String, in session: Session) throws(CommandFailure) -> [PlanExpectation] {
    let bytes = try bytes(of: path, in: session)
    do throws(KeyhaulError) {
      return try PlanExpectations(parsing: bytes).expectations
    } catch {
      throw .usage("\(InputFile.name(path)) is not a list of expectations", why: error.reason, try: error.advice)
    }
  }
}

extension PlanReport {
  /// A plan for a device, with the device's state as it is now.
  init(
    _ plan: MigrationPlan, of source: ReportSource, onto device: DeviceSession, isRedacted: Bool = false
  ) throws(CommandFailure) {
    do throws(KeyhaulError) {
      try self.init(plan, of: source, onto: device, made: device.environment.clock.now(), isRedacted: isRedacted)
    } catch {
      throw CommandFailure(error, device: device.name)
    }
  }

  /// The plan in text, on standard output; the warning that nothing moves goes first, to standard error.
  func say(in session: Session) throws(CommandFailure) {
    if let warning { session.warn(warning.message, why: warning.why, try: warning.advice) }
    let style = session.resultStyle
    for line in verdictLines(style: style) + heading(style: style) { try session.say(line) }
    try session.say()
    let text = text(showsAll: session.common.verbose > 0)
    for line in text.legend(style: style) { try session.say(line) }
    for line in text.lines(style: style) { try session.say(line) }
  }
}

extension PlanReport {
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
