import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul export`: writes the items of a backup or device, or files of a backup, for other programs.
struct Export: RunnableCommand, DecryptingCommand {
  static let helpScreen = HelpScreen(
    sentence: "Export items for other programs, or files from a backup",
    usage:
      "keyhaul export ARCHIVE|DEVICE -o PATH [attributes] [--reveal] | -o PATH --domain D --path P | --files DIR",
    examples: [
      "keyhaul export family.backup -o keychain.json",
      "keyhaul export family.backup -o passwords.csv --reveal --kind internet",
      "keyhaul export family.backup --domain HomeDomain --path Library/SMS/sms.db -o sms.db",
      "keyhaul export family.backup --files notes/ --app org.example.notes",
    ],
    flags: [
      .init("--format", ExportFormat.helpList),
      "--reveal",
      .init("--kind, --service, --server", "export only these items; * matches any text"), "--domain",
      "--files", "--password-file", "--dry-run", "--yes",
    ])
  static let configuration = makeConfiguration(named: "export")
  static let formats = OutputFormat.exports
  static let allowsJSONWithFormat = true

  @Argument(
    help: "The backup, device, keychain dump or keychain database.", completion: .devicesAndFiles)
  var source: String
  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp(
      "The file to write, with mode 0600; - is standard output. Without --format, the file's extension selects the "
        + "format.",
      valueName: "path"),
    completion: .file())
  var outputPath: String?
  @Flag(help: "Also write the secrets, in plain text.") var reveal = false
  @Option(help: ItemFilterOptions.kindHelp) var kind: ItemKindArgument?
  @OptionGroup(title: "Attributes") var attributes: ItemAttributeOptions
  @Option(
    help: ArgumentHelp(
      "Export the file at --path in this domain. With --files, export every file of the domain; may be repeated. "
        + "inspect --tree -v lists all files.", valueName: "domain"))
  var domain: [String] = []
  @Option(
    help: ArgumentHelp(
      "Write files into this folder, by domain and path: all files, or those that match --domain, --app and --path (* "
        + "matches any text). The same command, run again, continues where it stopped.", valueName: "dir"),
    completion: .directory)
  var files: String?
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @OptionGroup(title: "Opening the backup") var decryption: DecryptionOptions
  @OptionGroup var databaseKeys: DatabaseKeyOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  init() {}

  /// The output path; empty if none was given.
  var output: String { outputPath ?? "" }
  var filter: ItemFilterOptions { ItemFilterOptions(kind: kind, attributes: attributes) }

  /// The options for messages. `--format json` is removed if it only selects the format of the exported file, so messages
  /// are JSON only with `--json`.
  var messageOptions: CommonOptions {
    var options = common
    if output != "-", files == nil, options.format == .json { options.format = nil }
    return options
  }

  func run(in session: Session) throws -> CommandExitStatus {
    if let files { return try FolderExport(self, folder: files).run(in: session) }
    guard outputPath != nil else {
      throw CommandError.usage("keyhaul export needs --output PATH", try: "keyhaul export -h")
    }
    guard !output.isEmpty else { throw CommandError.usage("--output is empty", try: "-o PATH") }
    guard domain.count < 2 else {
      throw CommandError.usage(
        "--domain is given twice", why: "-o names one file", try: "--files DIR for all of them")
    }
    // A file of the backup may itself be an HTML file, and some formats create a page without --format html.
    let checksFileName = domain.isEmpty && !ExportFormat.writesPage(common, output: output)
    if checksFileName { try common.check(output: output) } else { try common.check() }
    if let domain = domain.first { return try SingleFileExport(self, domain: domain).run(in: session) }
    let selection = try ItemSelection(filter)
    if let path = filter.attributes.path, path.contains("/"), !path.hasPrefix("/") {
      session.info("--path alone selects internet passwords by path; to export a file from a backup, add --domain.")
    }
    let format = try ExportFormat.chosen(common, output: output, reveals: reveal)
    let source = try openSource(selection, format, in: session)
    if format.containsOnlyOneTimePasswords { warn(aboutMissing: source.authenticators, in: session) }
    let items = try export(source, format, in: session)
    try print(items, format, in: session)
    return items.damagedCount > 0 || source.authenticators.hasUnreadableFile ? .partial : .ok
  }

  /// Returns the name of the output in messages.
  static func outputName(_ output: String) -> String { output == "-" ? "standard output" : output }

  // MARK: The items

  private func openSource(
    _ selection: ItemSelection, _ format: ExportFormat, in session: Session
  ) throws -> ExportSource {
    let resolvedSource = try SourceResolver(session, databaseKeys).keychain(source)
    try databaseKeys.check([resolvedSource])
    switch resolvedSource {
    case .device(let device):
      try accessOptions.reject(for: device.name)
      try prepareOutput(inputs: device.files, in: session)
      return try device.withSession(.reading) { openDevice in
        try ExportSource(
          of: openDevice, named: device.name, selection, wantsSecrets: reveal || !format.isDocument)
      }
    case .dump(let dump):
      try dump.reject(accessOptions)
      try rejectAppFlag(for: "a \(dump.noun)")
      try prepareOutput(inputs: dump.files, in: session)
      dump.warn(in: session)
      return ExportSource(of: dump, selection)
    case .backup(let backup):
      try rejectAppFlag(for: "a backup")
      try prepareOutput(from: backup, in: session)
      return try open(backup, selection, format, in: session)
    }
  }

  private func rejectAppFlag(for source: String) throws(CommandError) {
    guard let app = filter.attributes.app else { return }
    throw .usage(
      "--app \(app) cannot be used with \(source)", why: "\(source) does not show which access groups an app has",
      try: "--access-group GROUP")
  }

  private func prepareOutput(inputs: [String?], in session: Session) throws(CommandError) {
    guard output != "-" else { return }
    try session.prepareOutput(output, inputs: inputs, asks: !dryRun.isOn)
  }

  /// Rejects an output that is an input or inside the backup.
  func prepareOutput(from backup: ResolvedBackup, in session: Session) throws(CommandError) {
    try prepareOutput(inputs: backup.files + accessOptions.files, in: session)
  }

  private func open(
    _ backup: ResolvedBackup, _ selection: ItemSelection, _ format: ExportFormat, in session: Session
  ) throws -> ExportSource {
    let loaded = try backup.open(storage: accessOptions.storage, in: session)
    // Does not ask for a password if the export will be refused anyway, because it needs --reveal. If the password need
    // not be typed, Keyhaul first reads the items, so that the error can state the number of secrets.
    let passwordSource = try accessOptions.password.source(environment: session.environment)
    let isPrompted = loaded.archive.isEncrypted && passwordSource == .prompt
    if isPrompted, !reveal, format.needsSecrets {
      throw ExportedItems.missingRevealFlag(Self.outputName(output), format, count: nil)
    }
    let unlocker = BackupUnlocker(loaded, accessOptions.decryption, in: session)
    let deviceKey = try unlocker.deviceKey()
    let reader = try unlocker.reader(
      with: try unlocker.key(accessOptions.password), deviceKey: deviceKey, for: .exporting)
    guard loaded.archive.hasKeychain else {
      throw CommandError(
        backup: KeyhaulError(.noKeychain, "it has no stored keychain file"), name: loaded.name)
    }
    if let damage = reader.keybagDamage {
      session.warn("\(loaded.name)'s keybag is damaged", why: damage, try: "another copy")
    }
    var source = ExportSource(reader, of: loaded, selection)
    if format.containsOneTimePasswords { source.authenticators = authenticators(of: loaded, reader, in: session) }
    return source
  }

  /// Returns the accounts in files of authenticator apps. Warns if the backup's manifest cannot be read.
  private func authenticators(
    of loaded: LoadedBackup, _ reader: BackupItemReader, in session: Session
  ) -> AuthenticatorAccounts {
    do throws(KeyhaulError) {
      return try AuthenticatorAccounts(
        in: loaded.archive, reader, installed: InstalledApps.names(in: loaded.archive).keys)
    } catch {
      session.warn("the files of authenticator apps cannot be read", why: error.reason)
      return AuthenticatorAccounts()
    }
  }

  private func warn(aboutMissing authenticators: AuthenticatorAccounts, in session: Session) {
    for missing in authenticators.missing {
      session.warn(
        "codes of \(missing.app.name) are missing", why: AuthenticatorText.reason(missing.obstacle),
        try: AuthenticatorText.advice(missing.app))
    }
  }

  // MARK: The result

  private func export(
    _ source: ExportSource, _ format: ExportFormat, in session: Session
  ) throws(CommandError) -> ExportedItems {
    var items = ExportedItems(of: source.origin, as: format)
    if !dryRun.isOn, reveal || format.isDocument {
      try writeOutput(in: session) { (write) throws(CommandError) in
        try items.write(from: source, revealingSecrets: reveal, in: session, to: write)
      }
      return items
    }
    // Without --reveal, the export is written only after Keyhaul has seen that it contains no secret.
    let isBuffered = !dryRun.isOn && !format.needsSecrets
    var buffer = SensitiveBuffer()
    try items.write(from: source, revealingSecrets: reveal, in: session) { (bytes) throws(CommandError) in
      if isBuffered { buffer.append(bytes) }
    }
    guard reveal || items.secretCount == 0 else {
      throw ExportedItems.missingRevealFlag(Self.outputName(output), format, count: items.secretCount)
    }
    if isBuffered { try writeOutput(in: session) { (write) throws(CommandError) in try buffer.withBytes(write) } }
    return items
  }

  /// The change that is final once the file is written.
  var committedChange: CommittedChange { CommittedChange("\(output) was written") }

  /// Writes the output. `body` passes each chunk to `write`.
  private func writeOutput(
    in session: Session,
    _ body: (_ write: (UnsafeRawBufferPointer) throws(CommandError) -> Void) throws(CommandError) -> Void
  ) throws(CommandError) {
    guard output != "-" else { return try session.write(to: output, body) }
    try session.committing(committedChange) { () throws(CommandError) in try session.write(to: output, body) }
  }

  private func print(_ items: ExportedItems, _ format: ExportFormat, in session: Session) throws(CommandError) {
    if session.isJSON {
      // On standard output, the export itself is the JSON document.
      if output != "-" || dryRun.isOn { try session.writeDocument(resultDocument(items)) }
      return items.warn(in: session)
    }
    let verb = dryRun.isOn ? "Would export" : "Exported"
    let sentence =
      "\(verb) \(HumanReadable.count(items.count, format.noun)) from \(UntrustedText.escaped(items.name)) to "
      + "\(UntrustedText.escaped(Self.outputName(output)))\(secretNote(items, format))."
    let deletion = output == "-" || dryRun.isOn ? nil : items.deletionSentence
    let sentences = [sentence] + [items.balanceSentence, items.filesSentence, deletion].compactMap(\.self)
    try announce(sentences.joined(separator: " "), in: session)
    if items.isFromBackup { session.info(BackupBlindSpots.line) }
    items.warn(in: session)
  }

  /// Returns a note about the secrets in the export; empty if the message need not mention secrets.
  private func secretNote(_ items: ExportedItems, _ format: ExportFormat) -> String {
    guard format.isDocument else { return items.secretCount > 0 ? " (in plain text)" : "" }
    return reveal ? items.revealedNote : " (without secrets; --reveal includes them)"
  }

  /// Returns the document of `--json` if the export goes to a file.
  private func resultDocument(_ items: ExportedItems) -> JSONValue {
    let document: JSONValue = [
      "format": "export-result/1", "source": .string(items.name), "output": .string(output),
      "items": .count(items.count), "revealed": .boolean(reveal && items.revealedCount > 0),
      "secrets": .count(reveal ? items.revealedCount : 0),
      "unreadable": .object(items.unreadableByReason.map { ($0.reason.rawValue, JSONValue.count($0.count)) }),
      "dry_run": .boolean(dryRun.isOn),
    ]
    return document.adding(items.balanceFields + items.authenticatorFields + items.blindSpotFields)
  }

  /// Prints a sentence about the export. If the export is on standard output, the sentence goes to standard error.
  func announce(_ sentence: String, in session: Session) throws(CommandError) {
    guard output == "-" else { return try session.announce(sentence) }
    try session.flush()
    session.info(sentence)
  }
}
