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
    return try resolvedDevice.withSession(.writing) { device in
      do throws(KeyhaulError) {
        try BackupExporter.check(device)
      } catch {
        throw CommandError(error, using: device.name)
      }
      let (destination, replaces) = try BackupOutput.destination(
        output, deviceIdentifier: device.record.udid, asks: !dryRun.isOn, in: session)
      let isPublished = try device.isHardwareKeyPublished(knownSeeds: WellKnownSeeds.all)
      let backup = try prepare(device, isPublished: isPublished, in: session)
      guard !dryRun.isOn else {
        try report(backup.report, device, isPublished: isPublished, outcome: nil, in: session)
        session.reportDryRun(dryRun)
        return Self.status(of: backup.report)
      }
      try Interruption.check()
      let outcome: WrittenBackup
      let name = output == "-" ? "standard output" : output
      do throws(KeyhaulError) {
        outcome = try session.streaming(to: output) { () throws(KeyhaulError) in
          try session.committing(
            CommittedChange(
              "the backup of \(device.name) was written to \(name)", inspectCommand: Self.inspectCommand(for: output))
          ) { () throws(KeyhaulError) in try backup.write(to: destination, replace: replaces) }
        }
      } catch {
        throw BackupOutput.failure(error, writing: output)
      }
      try device.recordBackup(at: backup.contents.date)
      session.warnIfOldBackupRemains(outcome.leftover)
      try report(backup.report, device, isPublished: isPublished, outcome: outcome, in: session)
      return Self.status(of: backup.report)
    }
  }

  private static func inspectCommand(for output: String) -> String? {
    output == "-" ? nil : "keyhaul inspect \(ShellQuoting.quote(output))"
  }

  private static func status(of report: ExportReport) -> CommandExitStatus {
    report.leftOut.contains { $0.outcome.reason?.isDamage == true } ? .partial : .ok
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

  private func prepare(
    _ device: DeviceSession, isPublished: Bool, in session: Session
  ) throws -> PreparedBackup {
    if isPublished {
      session.warnAboutPublishedKey(
        of: device.name,
        noPassword
          ? "anyone can decrypt the keychain in this backup"
          : "anyone with this backup's password can decrypt its this-device-only items on any device")
    }
    if noPassword, isPublished { return try prepared(device, nil, in: session) }
    if noPassword {
      session.warn(
        "only \(device.name) can decrypt the keychain in this backup",
        why: "without a password, the keychain's keys are wrapped with that device's hardware key",
        try: "leave --no-password out if its items should move to another device")
      return try prepared(device, nil, in: session)
    }
    let secret = try session.password(password, of: output == "-" ? "the backup" : output, isNew: true)
    return try prepared(device, secret, in: session)
  }

  private func prepared(
    _ device: DeviceSession, _ password: consuming Secret?, in session: Session
  ) throws -> PreparedBackup {
    let rounds = rounds?.value ?? BackupKeybag.standardRounds
    do throws(KeyhaulError) {
      return try session.deriving(rounds: rounds + Int(BackupKeybag.lastRounds)) { (progress) throws(KeyhaulError) in
        try BackupExporter.prepare(
          device, password: password, rounds: rounds, listsExported: common.verbose > 0, progress: progress)
      }
    } catch {
      try Interruption.check()
      throw CommandError(error, doing: "cannot back up \(device.name)")
    }
  }

  // MARK: The report

  private func report(
    _ report: ExportReport, _ device: DeviceSession, isPublished: Bool, outcome: WrittenBackup?,
    in session: Session
  ) throws(CommandError) {
    if session.isJSON {
      let document = BackupDocument(
        report, of: device.name, to: output, written: outcome, isEncrypted: !noPassword, isKeyPublished: isPublished)
      return try session.writeDocument(document.json)
    }
    var size = noPassword ? "no password" : "encrypted"
    if let outcome { size += ", \(HumanReadable.bytes(outcome.byteCount))" }
    let location = output == "-" ? "standard output" : UntrustedText.escaped(outcome?.path ?? output)
    let did = outcome == nil ? "Would back up" : "Backed up"
    var lines = [
      "\(did) \(HumanReadable.grouped(report.exportedCount)) of \(HumanReadable.count(report.total, "item")) from \(device.name) to "
        + "\(location) (\(size))."
    ]
    if session.common.verbose > 0 { lines += exportedLines(report, style: session.resultStyle) }
    lines += leftOutLines(report, style: session.resultStyle)
    if session.common.verbose > 0 { lines += tombstoneLines(report, style: session.resultStyle) }
    // The backup itself is on standard output.
    for line in lines { if output == "-" { session.info(line) } else { try session.print(line) } }
  }

  /// Returns a line for each exported item, in columns.
  private func exportedLines(_ report: ExportReport, style: TextStyle) -> [String] {
    let protections = report.exported.map { ItemText.protection($0.protection) }
    let widest = protections.map(DisplayWidth.columns).max() ?? 0
    let names = report.exported.map { style.escapedName(ItemText.name($0.identity)) }
    let availableWidth = max(Table.minimumColumnWidth, style.width - 4 - 11 - 4 - widest)
    let nameWidth = style.cutsText ? availableWidth : max(availableWidth, names.map(DisplayWidth.columns).max() ?? 0)
    return report.exported.indices.map { index in
      let (item, name, protection) = (report.exported[index], names[index], protections[index])
      return "  + " + DisplayWidth.padded(ItemText.kind(item.identity.kind), columns: 11) + "  "
        + DisplayWidth.padded(style.cut(name, columns: nameWidth), columns: nameWidth) + "  " + protection
    }
  }

  private func leftOutLines(_ report: ExportReport, style: TextStyle) -> [String] {
    var lines: [String] = []
    var shownReasons: [Reason] = []
    let leftOut = report.leftOutItems
    let countWidth = HumanReadable.grouped(leftOut.count).count
    for reason in Reason.allCases {
      let items = leftOut.filter { $0.outcome.reason == reason }
      guard !items.isEmpty else { continue }
      let names = common.verbose > 0 ? items[...] : items.prefix(1)
      let label = shownReasons.isEmpty ? "  left out  " : "            "
      for (index, item) in names.enumerated() {
        let count = DisplayWidth.padded(
          index == 0 ? HumanReadable.grouped(items.count) : "", columns: countWidth, rightAligned: true)
        let name = "\"\(UntrustedText.escaped(ItemText.name(item.identity), columns: 32))\""
        let more = items.count > names.count ? " and \(items.count - names.count) more" : ""
        let head = index == 0 ? label : "            "
        let detail = item.detail ?? reason.explanation.headline
        lines += WordWrap.labeled(
          head + count + " " + DisplayWidth.padded(index == 0 ? reason.rawValue : "", columns: 21),
          "\(name)\(more): \(UntrustedText.escaped(detail))", columns: style.width)
      }
      shownReasons.append(reason)
    }
    if let example = shownReasons.first { lines.append("  \"keyhaul explain \(example.rawValue)\" says why.") }
    return lines
  }

  private func tombstoneLines(_ report: ExportReport, style: TextStyle) -> [String] {
    let tombstones = report.tombstones
    guard !tombstones.isEmpty else { return [] }
    let names = tombstones.map { "\"\(UntrustedText.escaped(ItemText.name($0.identity), columns: 32))\"" }
    return WordWrap.labeled(
      "  not counted  ",
      HumanReadable.count(tombstones.count, "tombstone of a deleted item", plural: "tombstones of deleted items")
        + ": " + names.joined(separator: ", "), columns: style.width)
  }
}
