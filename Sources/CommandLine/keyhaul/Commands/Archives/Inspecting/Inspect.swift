import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul inspect`: what is in an archive.
struct Inspect: BackupVerb {
  static let screen = HelpScreen(
    sentence: "Show what is in a backup",
    usage: "keyhaul inspect ARCHIVE|FOLDER... [--list|--keybag|--tree] [-o FILE]",
    examples: ["keyhaul inspect family.backup --list --password-file ~/.bp", "keyhaul inspect Backup --format csv"],
    flags: [
      "--list", "--keybag", "--tree",
      .init("--hash", "print the line with which hashcat looks for a forgotten password"), "--output", "--format",
      "--password-file",
      .init("--paths-from", "read more paths from a file; - is standard input"),
      .init("--passwords", "a file that says where each backup's password is"),
      .init("--case", "with --examiner and -o, write a report for a case file"),
      .init("--resume", "skip backups whose results are already in this file"), "--json",
    ])
  static let configuration = described(as: "inspect")
  static let formats: [OutputFormat] = [.text, .json, .html, .ndjson, .csv]

  @Argument(
    help: ArgumentHelp(
      "The backup: a folder, a file, or - for a tar stream; or a keychain dump or database. Several backups, or a "
        + "folder of them, get one result each.",
      valueName: "archive"),
    completion: .file())
  var paths: [String] = []
  @Flag var part: Inspection.Part?
  @Flag(help: "Print the line that hashcat and John the Ripper read to look for a forgotten password.") var hash = false
  @OptionGroup var report: ReportOptions
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @OptionGroup(title: "Opening the backup") var opening: OpeningOptions
  @OptionGroup var databaseKeys: DatabaseKeyOptions
  @OptionGroup(title: "Case report") var caseReport: CaseOptions
  @OptionGroup(title: "Many backups") var many: ManyBackupsOptions
  @OptionGroup var chosen: FieldOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  var unlocking: UnlockingOptions { UnlockingOptions(password: password, opening: opening) }

  func performAlone(in session: Session) throws -> CommandStatus {
    let archive = paths.first ?? ""
    if common.isHTML, let part {
      throw CommandFailure.usage(
        "--\(part.rawValue) and --format html cannot be used together", why: "the page shows every part",
        try: "leave --\(part.rawValue) out")
    }
    let found: FoundArchive
    let source = try ArgumentFinder(session, databaseKeys).archiveOrDump(archive)
    try databaseKeys.check([source])
    switch source {
    case .archive(let archive): found = archive
    case .dump(let dump): return try inspect(dump, in: session)
    case .device(let device): throw FoundArchive.isDevice(device.name)
    }
    let backups = found.backups
    if let backups { throw BackupChoice.several(backups, in: archive) }
    if hash { return try sayHash(of: found, in: session) }
    try report.prepare(inputs: found.files + unlocking.files, in: session)
    // What is left of a backup is shown in text and as a document; the page and single parts need the whole.
    let named = try found.open(
      storage: unlocking.storage, takesRemains: part == nil && !common.isHTML, in: session)
    let unlocker = ArchiveUnlocker(named, unlocking.opening, in: session)
    var (opened, finding): (Opened?, BackupFinding?)
    do {
      opened = named.archive.isRemainder ? nil : try self.opened(named, by: unlocker, in: session)
      if let report = opened?.archive.keybagDamage {
        finding = .classKeysDamaged(reason: report)
        if let finding { named.warn(of: finding, in: session) }
      }
    } catch let error as CommandFailure where error.status == .damaged && !needsItems {
      // With the password no less is shown than without.
      finding = named.unopened(because: error)
      if let finding, !named.archive.findings.contains(finding) { named.warn(of: finding, in: session) }
    }
    let inspection = try named.inspecting { () throws(KeyhaulError) in
      try Inspection(
        named.archive, named: named.name, unlocked: opened?.archive, sourceDeviceItems: opened?.sourceDeviceItems,
        decryptionObstacle: finding, part: part,
        wantsTree: part == .tree || common.isHTML, showsAll: common.verbose > 0, unlockedIn: opened?.derivationTime,
        isTimed: !session.isOneOfMany, hasMatchingPassword: unlocker.derivationTime != nil)
    }
    try session.deliver(
      inspection, page: inspection.page(argument: FoundKeychain.archive(found).word, program: ProgramVersion.signature),
      to: report.output)
    return inspection.isPartlyUnreadable ? .partial : .ok
  }

  /// Prints the line that tools for forgotten passwords read. It is not secret, but it lets others guess the password.
  private func sayHash(of found: FoundArchive, in session: Session) throws -> CommandStatus {
    guard part == nil, common.format ?? .text == .text, !session.isJSON, report.output == nil, paths.count == 1 else {
      throw CommandFailure.usage(
        "--hash cannot be used with other parts, formats or backups", why: "it prints one line of text",
        try: "keyhaul inspect --hash ARCHIVE")
    }
    let named = try found.open(storage: unlocking.storage, in: session)
    guard named.archive.isEncrypted, let line = named.archive.keybag.passwordHash else {
      throw CommandFailure(
        .refused, "\(named.name) has no line for a password",
        why: named.archive.isEncrypted ? "its keybag has no key that a password wraps" : "it has no password",
        try: "keyhaul inspect \(ShellQuoting.quote(named.name))")
    }
    try session.say(line)
    return .ok
  }

  /// Shows what is in another tool's dump.
  private func inspect(_ found: FoundDump, in session: Session) throws(CommandFailure) -> CommandStatus {
    try found.refuse(unlocking)
    try found.refusePage(in: session)
    if let part, part != .list {
      throw .usage(
        "--\(part.rawValue) applies only to "
          + "backups", why: "\(found.typed) is a \(found.noun): it has no keybag and no files",
        try: "--list")
    }
    try report.prepare(inputs: found.files, in: session)
    let inspection = DumpInspection(found, listsItems: part == .list)
    try session.deliver(inspection, to: report.output)
    return inspection.isPartlyUnreadable ? .partial : .ok
  }

  // MARK: The password

  /// The archive with its items tried, and what the device that made it has besides.
  private struct Opened {
    let archive: UnlockedBackup
    let sourceDeviceItems: SourceDeviceItems?
    /// How long deriving the password's key took.
    let derivationTime: Duration?

    init(_ unlocker: ArchiveUnlocker, _ password: PasswordFlags) throws {
      let hardware = try unlocker.hardwareKey()
      let key = try unlocker.key(password)
      derivationTime = unlocker.derivationTime
      archive = try unlocker.open(with: key, hardware)
      sourceDeviceItems = try unlocker.sourceDevice(of: archive, named: nil, orTarget: nil, with: key)?.items
    }
  }

  /// The archive with its items tried, where the password is available or is all that a wanted part lacks.
  private func opened(
    _ named: NamedArchive, by unlocker: ArchiveUnlocker, in session: Session
  ) throws -> Opened? {
    let hasDeviceKey = try unlocking.opening.deviceKeySource() != nil
    if !named.archive.isEncrypted || unlocking.password.isGiven || hasDeviceKey || needsPassword(named)
      || session.offersListed
    {
      return try Opened(unlocker, unlocking.password)
    }
    guard try unlocking.password.source(environment: session.environment) != .prompt else { return nil }
    // What the environment names is used where it fits. An overview needs no password, so that nothing is lost where it
    // does not.
    do {
      return try Opened(unlocker, unlocking.password)
    } catch let error as CommandFailure {
      try Interruption.check()
      guard [.failed, .wrongPassword, .notFound].contains(error.status) else { throw error }
      session.warn(
        error.message, why: error.why, try: "check the password; the rest is shown without it", of: error.errno)
      return nil
    }
  }

  /// Whether what is asked for is nothing without what the password opens.
  private var needsItems: Bool {
    switch part {
    case .list?, .tree?: true
    case .keybag?, nil: false
    }
  }

  private func needsPassword(_ named: NamedArchive) -> Bool {
    switch part {
    case .list?: true
    // Old backups have their list in clear.
    case .tree?: named.archive.isListEncrypted
    case .keybag?, nil: false
    }
  }
}

extension NamedArchive {
  /// Why nothing opens though the password is right.
  fileprivate func unopened(because error: CommandFailure) -> BackupFinding {
    let reason = error.why ?? error.message
    if let keybag = archive.findings.first(where: \.preventsReadingKeybag) { return keybag }
    let isOfKeybag = (try? archive.keybag.derivationParameters()) == nil
    return isOfKeybag
      ? .keybagUnusable(reason: reason) : .listUnreadable(name: archive.layout.listName, reason: reason)
  }
}

extension DumpInspection: Report {
  fileprivate init(_ found: FoundDump, listsItems: Bool) {
    let items = found.dump.items.map(\.item)
    self.init(
      found.dump, named: found.typed, digest: found.digest, listsItems: listsItems,
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

extension NamedArchive {
  /// Reads what a report is made of; errors are told in the words of what the user named.
  fileprivate func inspecting<Value>(
    _ body: () throws(KeyhaulError) -> Value
  ) throws(CommandFailure) -> Value {
    do throws(KeyhaulError) { return try body() } catch { throw CommandFailure(archive: error, name: name) }
  }
}
