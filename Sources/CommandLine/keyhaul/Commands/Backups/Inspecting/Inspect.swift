import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul inspect`: shows the contents of a backup.
struct Inspect: CaseReportCommand {
  static let helpScreen = HelpScreen(
    sentence: "Show what is in a backup",
    usage: "keyhaul inspect ARCHIVE|FOLDER... [--list|--keybag|--tree] [-o FILE]",
    examples: ["keyhaul inspect family.backup --list --password-file ~/.bp", "keyhaul inspect Backup --format csv"],
    flags: addingSharedRows(to: [
      "--list", "--keybag", "--tree",
      .init("--hash", "print the hash that hashcat needs to recover the password"), "--output", "--format",
      "--password-file",
    ]))
  static let configuration = makeConfiguration(named: "inspect")
  static let formats: [OutputFormat] = [.text, .json, .html, .ndjson, .csv]

  @Argument(
    help: ArgumentHelp(
      "The backup: a folder, a file, or - for a tar stream; or a keychain dump or database. Several backups, or a "
        + "folder of them, get one result each.",
      valueName: "archive"),
    completion: .file())
  var paths: [String] = []
  @Flag var part: Inspection.Part?
  @Flag(help: "Print the hash that hashcat and John the Ripper need to recover a forgotten password.") var hash = false
  @OptionGroup var report: ReportOptions
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @OptionGroup(title: "Opening the backup") var decryption: DecryptionOptions
  @OptionGroup var databaseKeys: DatabaseKeyOptions
  @OptionGroup(title: "Case report") var caseReport: CaseOptions
  @OptionGroup(title: "Many backups") var batchOptions: BatchOptions
  @OptionGroup var fieldOptions: FieldOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func runSingle(in session: Session) throws -> CommandExitStatus {
    if common.isHTML, let part {
      throw CommandError.usage(
        "--\(part.rawValue) and --format html cannot be used together", why: "the page shows every part",
        try: "leave --\(part.rawValue) out")
    }
    switch try SourceResolver(session, databaseKeys).backupOrDump(paths.first ?? "") {
    case .backup(let backup): return try inspect(backup, in: session)
    case .dump(let dump): return try inspect(dump, in: session)
    }
  }

  private func inspect(_ backup: ResolvedBackup, in session: Session) throws -> CommandExitStatus {
    if let backups = backup.backups {
      throw BackupDirectoryResolver.severalBackupsError(backups, in: paths.first ?? "")
    }
    if hash { return try printHash(of: backup, in: session) }
    try report.prepare(inputs: backup.files + accessOptions.files, in: session)
    // Text and JSON can show the remains of a damaged backup. The HTML page and single parts need a complete backup.
    let loaded = try backup.open(
      storage: accessOptions.storage, acceptsPartialBackup: part == nil && !common.isHTML, in: session)
    let unlocker = BackupUnlocker(loaded, accessOptions.decryption, in: session)
    let (decrypted, obstacle) = try decrypt(loaded, with: unlocker, in: session)
    let inspection: Inspection
    do throws(KeyhaulError) {
      inspection = try Inspection(
        loaded.archive, named: loaded.name, unlocked: decrypted?.backup,
        sourceDeviceItems: decrypted?.sourceDeviceItems, decryptionObstacle: obstacle, part: part,
        wantsTree: part == .tree || common.isHTML, showsAll: common.verbose > 0, unlockedIn: decrypted?.derivationTime,
        isTimed: !session.isPartOfBatch, hasMatchingPassword: unlocker.derivationTime != nil)
    } catch {
      throw CommandError(backup: error, name: loaded.name)
    }
    try session.deliver(
      inspection,
      page: inspection.page(
        argument: ResolvedSource.backup(backup).suggestedArgument, program: ProgramVersion.signature),
      to: report.output)
    return inspection.isPartlyUnreadable ? .partial : .ok
  }

  /// Prints the hash that password recovery tools need. The hash is not secret, but anyone who has it can guess passwords.
  private func printHash(of backup: ResolvedBackup, in session: Session) throws -> CommandExitStatus {
    guard part == nil, common.format ?? .text == .text, !session.isJSON, report.output == nil, paths.count == 1 else {
      throw CommandError.usage(
        "--hash cannot be used with other parts, formats or backups", why: "it prints one line of text",
        try: "keyhaul inspect --hash ARCHIVE")
    }
    let loaded = try backup.open(storage: accessOptions.storage, in: session)
    guard loaded.archive.isEncrypted, let line = loaded.archive.keybag.passwordHash else {
      throw CommandError(
        .refused, "cannot print a hash for \(loaded.name)",
        why: loaded.archive.isEncrypted ? "no key in its keybag is protected by a password" : "it has no password",
        try: "keyhaul inspect \(ShellQuoting.quote(loaded.name))")
    }
    try session.print(line)
    return .ok
  }

  /// Shows the contents of another tool's dump.
  private func inspect(_ dump: ResolvedDump, in session: Session) throws(CommandError) -> CommandExitStatus {
    try dump.reject(accessOptions)
    try dump.rejectPage(in: session)
    if let part, part != .list {
      throw .usage(
        "--\(part.rawValue) applies only to backups",
        why: "\(dump.name) is a \(dump.noun): it has no keybag and no files", try: "--list")
    }
    try report.prepare(inputs: dump.files, in: session)
    let inspection = DumpInspection(dump, listsItems: part == .list)
    try session.deliver(inspection, to: report.output)
    return inspection.isPartlyUnreadable ? .partial : .ok
  }

  // MARK: The password

  /// The decrypted backup, with the items of its source device if that is available.
  private struct DecryptedContents {
    let backup: UnlockedBackup
    let sourceDeviceItems: SourceDeviceItems?
    /// The time that deriving the password's key took.
    let derivationTime: Duration?

    init(_ unlocker: BackupUnlocker, _ password: PasswordFlags) throws {
      let deviceKey = try unlocker.deviceKey()
      let key = try unlocker.key(password)
      derivationTime = unlocker.derivationTime
      backup = try unlocker.open(with: key, deviceKey: deviceKey)
      sourceDeviceItems = try unlocker.sourceDevice(of: backup, named: nil, orTarget: nil, with: key)?.items
    }
  }

  /// Decrypts the backup if possible and needed. Damage is an error only if the requested part shows decrypted contents.
  ///
  /// - Returns: The decrypted backup, and the finding that explains why it is not decrypted completely.
  private func decrypt(
    _ loaded: LoadedBackup, with unlocker: BackupUnlocker, in session: Session
  ) throws -> (contents: DecryptedContents?, obstacle: BackupFinding?) {
    guard !loaded.archive.isPartial else { return (nil, nil) }
    do {
      let decrypted = try decryptedBackup(loaded, with: unlocker, in: session)
      guard let reason = decrypted?.backup.keybagDamage else { return (decrypted, nil) }
      let damage = BackupFinding.classKeysDamaged(reason: reason)
      loaded.warn(about: damage, in: session)
      return (decrypted, damage)
    } catch let error as CommandError where error.status == .damaged && !needsDecryption {
      // With the right password, the user must not see less than without a password.
      let obstacle = loaded.decryptionObstacle(for: error)
      if !loaded.archive.findings.contains(obstacle) { loaded.warn(about: obstacle, in: session) }
      return (nil, obstacle)
    }
  }

  /// Decrypts the backup if the password is available or required; otherwise returns `nil`.
  private func decryptedBackup(
    _ loaded: LoadedBackup, with unlocker: BackupUnlocker, in session: Session
  ) throws -> DecryptedContents? {
    let hasDeviceKey = try accessOptions.decryption.deviceKeySource() != nil
    let isSecretGiven = accessOptions.password.isGiven || session.hasListedPassword || hasDeviceKey
    if !loaded.archive.isEncrypted || isSecretGiven || needsPassword(loaded) {
      return try DecryptedContents(unlocker, accessOptions.password)
    }
    guard try accessOptions.password.source(environment: session.environment) != .prompt else { return nil }
    // The overview does not need the password from the environment, so a wrong password only causes a warning.
    do {
      return try DecryptedContents(unlocker, accessOptions.password)
    } catch let error as CommandError {
      try Interruption.check()
      guard [.failed, .wrongPassword, .notFound].contains(error.status) else { throw error }
      session.warn(
        error.message, why: error.why, try: "check the password; the rest is shown without it", of: error.errno)
      return nil
    }
  }

  /// Whether the requested part shows decrypted contents: the items or the manifest.
  private var needsDecryption: Bool {
    switch part {
    case .list?, .tree?: true
    case .keybag?, nil: false
    }
  }

  /// Returns whether the requested part cannot be shown without the password.
  private func needsPassword(_ loaded: LoadedBackup) -> Bool {
    switch part {
    case .list?: true
    // The manifest of old backups is not encrypted.
    case .tree?: loaded.archive.isListEncrypted
    case .keybag?, nil: false
    }
  }
}

extension LoadedBackup {
  /// Returns the finding that explains why nothing can be decrypted although the password is right.
  fileprivate func decryptionObstacle(for error: CommandError) -> BackupFinding {
    let reason = error.why ?? error.message
    if let keybag = archive.findings.first(where: \.preventsReadingKeybag) { return keybag }
    let isKeybagFault = (try? archive.keybag.derivationParameters()) == nil
    return isKeybagFault
      ? .keybagUnusable(reason: reason) : .listUnreadable(name: archive.layout.listName, reason: reason)
  }
}

extension DumpInspection: Report {
  fileprivate init(_ dump: ResolvedDump, listsItems: Bool) {
    let items = dump.contents.items.map(\.item)
    self.init(
      dump.contents, named: dump.name, digest: dump.digest, listsItems: listsItems,
      names: items.map { $0.map { ItemText.name(of: $0) } ?? "(encrypted)" },
      disambiguators: ItemText.disambiguators(items)
    )
  }
}

extension Inspection.Part: EnumerableFlag {
  static func help(for value: Inspection.Part) -> ArgumentHelp? {
    switch value {
    case .list: "List the keychain's items."
    case .keybag: "Show the keybag's header, classes and iterations."
    case .tree: "Show the files by domain and folder, with counts and sizes; -v lists each file."
    }
  }
}
