import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul backup`: writes a device's keychain into a backup.
struct BackupCommand: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Back up a device's keychain",
    usage: "keyhaul backup DEVICE -o ARCHIVE [--no-password] [--rounds N]",
    examples: [
      "keyhaul backup old-phone -o family.backup",
      "keyhaul backup old-phone -o family.tar.zst --password-file ~/.bp",
    ],
    flags: ["--output", "--password-file", "--no-password", "--dry-run", "--yes"])
  static let configuration = makeConfiguration(named: "backup")

  @Argument(help: "The device to back up.", completion: .deviceNames) var device: String
  @Option(
    name: .shortAndLong,
    help: ArgumentHelp(BackupOutput.help, valueName: "archive"),
    completion: .file())
  var output: String
  @Flag(help: "Make a backup without a password. Only this device can then decrypt its keychain.")
  var noPassword = false
  @Option(
    help: ArgumentHelp("The number of PBKDF2 iterations (default 10,000,000).", valueName: "n"),
    transform: IterationCount.parseWritten)
  var rounds: IterationCount?
  @OptionGroup(title: "The new backup's password") var password: PasswordFlags
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    try checkFlags(session)
    let resolvedDevice = try SourceResolver(session).device(device)
    return try resolvedDevice.withSession(.writing) { openDevice in
      do throws(KeyhaulError) {
        try BackupExporter.check(openDevice)
      } catch {
        throw CommandError(error, using: openDevice.name)
      }
      let (destination, replaces) = try BackupOutput.destination(
        output, deviceIdentifier: openDevice.record.udid, asks: !dryRun.isOn, in: session)
      let isPublished = try openDevice.isDeviceKeyPublished(knownSeeds: WellKnownSeeds.all)
      let backup = try prepare(openDevice, isPublished: isPublished, in: session)
      guard !dryRun.isOn else {
        try report(backup.report, openDevice, isPublished: isPublished, written: nil, in: session)
        session.reportDryRun(dryRun)
        return Self.status(of: backup.report)
      }
      let writtenBackup = try write(backup, of: openDevice, to: destination, replaces: replaces, in: session)
      try openDevice.recordBackup(at: backup.contents.date)
      session.warnIfOldBackupRemains(writtenBackup.leftover)
      try report(backup.report, openDevice, isPublished: isPublished, written: writtenBackup, in: session)
      return Self.status(of: backup.report)
    }
  }

  private func write(
    _ backup: PreparedBackup, of openDevice: DeviceSession, to destination: BackupDestination, replaces: Bool,
    in session: Session
  ) throws(CommandError) -> WrittenBackup {
    try Interruption.check()
    let clause = "the backup of \(openDevice.name) was written to"
    let change =
      output == "-" ? CommittedChange("\(clause) standard output") : CommittedChange("\(clause) \(output)", at: output)
    do throws(KeyhaulError) {
      return try session.streaming(to: output) { () throws(KeyhaulError) in
        try session.committing(change) { () throws(KeyhaulError) in
          try backup.write(to: destination, replace: replaces)
        }
      }
    } catch {
      throw BackupOutput.failure(error, writing: output)
    }
  }

  private static func status(of report: ExportReport) -> CommandExitStatus {
    report.omissions.contains { $0.outcome.reason?.isDamage == true } ? .partial : .ok
  }

  private func checkFlags(_ session: Session) throws(CommandError) {
    if noPassword, password.isGiven {
      throw .usage("--no-password and a password cannot be used together", try: "use only one of them")
    }
    if noPassword, rounds != nil {
      throw .usage(
        "--no-password and --rounds cannot be used together",
        why: "a backup without a password needs no slow key derivation",
        try: "use only one of them")
    }
    try BackupOutput.check(output, differsFrom: [password.file], in: session)
  }

  /// Warns about the backup's protection, asks for its password if it has one, and prepares the backup.
  private func prepare(
    _ openDevice: DeviceSession, isPublished: Bool, in session: Session
  ) throws -> PreparedBackup {
    if isPublished {
      session.warnAboutPublishedKey(
        of: openDevice.name,
        noPassword
          ? "anyone can decrypt the keychain in this backup"
          : "anyone with this backup's password can decrypt its this-device-only items on any device")
    }
    if noPassword, !isPublished {
      session.warn(
        "only \(openDevice.name) can decrypt the keychain in this backup",
        why: "without a password, the keychain's keys are wrapped with that device's key",
        try: "leave --no-password out if its items should move to another device")
    }
    guard !noPassword else { return try prepare(openDevice, password: nil, in: session) }
    let secret = try session.password(password, of: output == "-" ? "the backup" : output, isNew: true)
    return try prepare(openDevice, password: secret, in: session)
  }

  /// Derives the backup's key, and encrypts the items.
  private func prepare(
    _ openDevice: DeviceSession, password: consuming Secret?, in session: Session
  ) throws -> PreparedBackup {
    let rounds = rounds?.value ?? BackupKeybag.standardRounds
    let iterationCount = rounds + Int(BackupKeybag.lastRounds)
    do throws(KeyhaulError) {
      return try session.deriving(iterationCount: iterationCount) { (progress) throws(KeyhaulError) in
        try BackupExporter.prepare(
          openDevice, password: password, rounds: rounds, listsExported: common.verbose > 0, progress: progress)
      }
    } catch {
      try Interruption.check()
      throw CommandError(error, failedAction: "cannot back up \(openDevice.name)")
    }
  }

  // MARK: The report

  private func report(
    _ report: ExportReport, _ openDevice: DeviceSession, isPublished: Bool, written writtenBackup: WrittenBackup?,
    in session: Session
  ) throws(CommandError) {
    if session.isJSON {
      let document = BackupDocument(
        report, of: openDevice.name, to: output, written: writtenBackup, isEncrypted: !noPassword,
        isKeyPublished: isPublished)
      return try session.writeDocument(document.json)
    }
    var details = noPassword ? "no password" : "encrypted"
    if let writtenBackup { details += ", \(HumanReadable.bytes(writtenBackup.byteCount))" }
    let location = output == "-" ? "standard output" : UntrustedText.escaped(writtenBackup?.path ?? output)
    let verb = writtenBackup == nil ? "Would back up" : "Backed up"
    let exportedCount = HumanReadable.grouped(report.exportedCount)
    let total = HumanReadable.count(report.total, "item")
    var lines = ["\(verb) \(exportedCount) of \(total) from \(openDevice.name) to \(location) (\(details))."]
    if session.common.verbose > 0 { lines += exportedLines(report, style: session.resultStyle) }
    lines += omissionLines(report, style: session.resultStyle)
    if session.common.verbose > 0 { lines += tombstoneLines(report, style: session.resultStyle) }
    // The backup itself is on standard output.
    for line in lines { if output == "-" { session.info(line) } else { try session.print(line) } }
  }

  /// Returns a line for each exported item: "  + kind         name    protection class".
  private func exportedLines(_ report: ExportReport, style: TextStyle) -> [String] {
    let protections = report.exported.map { ItemText.protection($0.protection) }
    let protectionWidth = protections.map(DisplayWidth.columns).max() ?? 0
    let names = report.exported.map { style.escapedName(ItemText.name($0.identity)) }
    // In addition to the columns, a line has "  + " before the kind, and two spaces after the kind and after the name.
    let fixedWidth = 4 + Self.kindWidth + 4
    let availableWidth = max(Table.minimumColumnWidth, style.width - fixedWidth - protectionWidth)
    let nameWidth = style.cutsText ? availableWidth : max(availableWidth, names.map(DisplayWidth.columns).max() ?? 0)
    return report.exported.indices.map { index in
      let (item, name, protection) = (report.exported[index], names[index], protections[index])
      return "  + " + DisplayWidth.padded(ItemText.kind(item.identity.kind), columns: Self.kindWidth) + "  "
        + DisplayWidth.padded(style.cut(name, columns: nameWidth), columns: nameWidth) + "  " + protection
    }
  }

  /// The width of the longest kind, "certificate".
  private static let kindWidth = 11
  /// The width of a reason's id.
  private static let reasonWidth = 21
  /// The maximum width of the name of an omitted item or a tombstone.
  private static let maximumNameWidth = 32

  /// Returns the lines for items that were left out, one for each reason: "  left out  3 device-bound   "name" and 2 more:
  /// why". With `-v`, each item has its own line.
  private func omissionLines(_ report: ExportReport, style: TextStyle) -> [String] {
    let itemsByReason = Dictionary(grouping: report.omittedItems, by: \.outcome.reason)
    let reasons = Reason.allCases.filter { itemsByReason[$0] != nil }
    guard let firstReason = reasons.first else { return [] }
    let countWidth = HumanReadable.grouped(report.omittedItems.count).count
    var lines: [String] = []
    for reason in reasons {
      let items = itemsByReason[reason] ?? []
      let shownItems = common.verbose > 0 ? items[...] : items.prefix(1)
      for (index, item) in shownItems.enumerated() {
        let isFirst = index == 0
        let label = isFirst && reason == firstReason ? "  left out  " : "            "
        let count = DisplayWidth.padded(
          isFirst ? HumanReadable.grouped(items.count) : "", columns: countWidth, rightAligned: true)
        let id = DisplayWidth.padded(isFirst ? reason.rawValue : "", columns: Self.reasonWidth)
        let name = "\"\(UntrustedText.escaped(ItemText.name(item.identity), columns: Self.maximumNameWidth))\""
        let hiddenItemsNote = items.count > shownItems.count ? " and \(items.count - shownItems.count) more" : ""
        let detail = item.detail ?? reason.explanation.headline
        lines += WordWrap.labeled(
          "\(label)\(count) \(id)", "\(name)\(hiddenItemsNote): \(UntrustedText.escaped(detail))", columns: style.width)
      }
    }
    return lines + ["  \"keyhaul explain \(firstReason.rawValue)\" says why."]
  }

  private func tombstoneLines(_ report: ExportReport, style: TextStyle) -> [String] {
    let tombstones = report.tombstones
    guard !tombstones.isEmpty else { return [] }
    let names = tombstones.map {
      "\"\(UntrustedText.escaped(ItemText.name($0.identity), columns: Self.maximumNameWidth))\""
    }
    return WordWrap.labeled(
      "  not counted  ", ItemText.tombstones(tombstones.count) + ": " + names.joined(separator: ", "),
      columns: style.width)
  }
}
