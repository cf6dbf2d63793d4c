import ArgumentParser
import KeyhaulKit
import Reports

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// `keyhaul export`: items of an archive or a device, or files of an archive, for other programs.
struct Export: RunnableVerb {
  static let screen = HelpScreen(
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
      .init("--format", ExportFormat.list),
      "--reveal",
      .init("--kind, --service, --server", "export only these items; * matches any text"), "--domain",
      "--files", "--password-file", "--dry-run", "--yes",
    ])
  static let configuration = described(as: "export")
  static let formats = OutputFormat.exports
  static let answersBesideFiles = true

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
  @Option(help: ChosenItems.kindHelp) var kind: ItemKindArgument?
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
  @OptionGroup(title: "Opening the backup") var opening: OpeningOptions
  @OptionGroup var databaseKeys: DatabaseKeyOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  init() {}

  /// Where the result goes; empty where the user did not say.
  var output: String { outputPath ?? "" }
  var unlocking: UnlockingOptions { UnlockingOptions(password: password, opening: opening) }
  var chosen: ChosenItems { ChosenItems(kind: kind, attributes: attributes) }

  /// A format is that of the file; only `--json` asks for a document about it.
  var messageOptions: CommonOptions {
    var options = common
    if output != "-", files == nil, options.format == .json { options.format = nil }
    return options
  }

  func perform(in session: Session) throws -> CommandStatus {
    if let files { return try FilesExport(self, folder: files).perform(in: session) }
    guard outputPath != nil else {
      throw CommandFailure.usage("keyhaul export needs --output PATH", try: "keyhaul export -h")
    }
    guard !output.isEmpty else { throw CommandFailure.usage("--output is empty", try: "-o PATH") }
    guard domain.count < 2 else {
      throw CommandFailure.usage(
        "--domain is given twice", why: "-o names one file", try: "--files DIR for all of them")
    }
    let isChecked = domain.isEmpty && !ExportFormat.writesPage(common, output: output)
    if isChecked { try common.check(output: output) } else { try common.check() }
    if let domain = domain.first { return try FileExport(self, domain: domain).perform(in: session) }
    let selection = try ItemSelection(chosen)
    if let path = chosen.attributes.path, path.contains("/"), !path.hasPrefix("/") {
      session.note("--path alone selects internet passwords by path; to export a file from a backup, add --domain.")
    }
    let format = try ExportFormat.chosen(common, output: output, reveals: reveal)
    let source = try openSource(selection, format, in: session)
    if format.containsOnlyOneTimePasswords { warn(ofMissing: source.authenticators, in: session) }
    let items = try export(source, format, in: session)
    try say(items, format, in: session)
    return items.damagedCount > 0 || source.authenticators.hasUnreadableFile ? .partial : .ok
  }

  static func shown(_ output: String) -> String { output == "-" ? "standard output" : output }

  // MARK: The items

  private func openSource(
    _ selection: ItemSelection, _ format: ExportFormat, in session: Session
  ) throws -> ExportSource {
    let found = try ArgumentFinder(session, databaseKeys).keychain(source)
    try databaseKeys.check([found])
    switch found {
    case .device(let device):
      try unlocking.refuse(for: device.name)
      try prepareOutput(inputs: device.files, in: session)
      return try device.hold(.reading) { openDevice in
        try ExportSource(
          of: openDevice, named: device.name, selection, wantsSecrets: reveal || !format.isDocument)
      }
    case .dump(let found):
      try found.refuse(unlocking)
      try refuseApp(of: "a \(found.noun)")
      try prepareOutput(inputs: found.files, in: session)
      found.warn(in: session)
      return ExportSource(of: found, selection)
    case .archive(let found):
      try refuseApp(of: "a backup")
      try prepareOutput(from: found, in: session)
      return try open(found, selection, format, in: session)
    }
  }

  private func refuseApp(of source: String) throws(CommandFailure) {
    guard let app = chosen.attributes.app else { return }
    throw .usage(
      "--app \(app) cannot be used with \(source)", why: "\(source) does not show which access groups an app has",
      try: "--access-group GROUP")
  }

  private func prepareOutput(inputs: [String?], in session: Session) throws(CommandFailure) {
    guard output != "-" else { return }
    try session.prepareOutput(output, inputs: inputs, asks: !dryRun.isOn)
  }

  /// Refuses to take the place of the archive or of the password, and to lie in the archive.
  func prepareOutput(from archive: FoundArchive, in session: Session) throws(CommandFailure) {
    try prepareOutput(inputs: archive.files + unlocking.files, in: session)
  }

  private func open(
    _ found: FoundArchive, _ selection: ItemSelection, _ format: ExportFormat, in session: Session
  ) throws -> ExportSource {
    let named = try found.open(storage: unlocking.storage, in: session)
    // Nobody types a password to be refused afterwards; where none is typed, the refusal can say how many there are.
    let source = try unlocking.password.source(environment: session.environment)
    let isAsked = named.archive.isEncrypted && source == .prompt
    if isAsked, !reveal, format.needsSecrets {
      throw ExportedItems.missingRevealFlag(Self.shown(output), format, count: nil)
    }
    let unlocker = ArchiveUnlocker(named, unlocking.opening, in: session)
    let hardware = try unlocker.hardwareKey()
    let reader = try unlocker.reader(with: try unlocker.key(unlocking.password), hardware, for: .exporting)
    guard named.archive.hasKeychain else {
      throw CommandFailure(
        archive: KeyhaulError(.noKeychain, "it has no stored keychain file"), name: named.name)
    }
    if let damage = reader.keybagDamage {
      session.warn("\(named.name)'s keybag is damaged", why: damage, try: "another copy")
    }
    var items = ExportSource(reader, of: named, selection)
    if format.containsOneTimePasswords { items.authenticators = authenticators(of: named, reader, in: session) }
    return items
  }

  /// The accounts in files of authenticator apps. If the backup's manifest cannot be read, there is a warning.
  private func authenticators(
    of named: NamedArchive, _ items: BackupItemReader, in session: Session
  ) -> AuthenticatorAccounts {
    do throws(KeyhaulError) {
      return try AuthenticatorAccounts(
        in: named.archive, items, installed: InstalledApps.names(in: named.archive).keys)
    } catch {
      session.warn("the files of authenticator apps cannot be read", why: error.reason)
      return AuthenticatorAccounts()
    }
  }

  private func warn(ofMissing authenticators: AuthenticatorAccounts, in session: Session) {
    for missing in authenticators.missing {
      session.warn(
        "codes of \(missing.app.name) are missing", why: AuthenticatorText.reason(missing.obstacle),
        try: AuthenticatorText.advice(missing.app))
    }
  }

  // MARK: The result

  private func export(
    _ source: ExportSource, _ format: ExportFormat, in session: Session
  ) throws(CommandFailure) -> ExportedItems {
    var items = ExportedItems(of: source.origin, as: format)
    if !dryRun.isOn, reveal || format.isDocument {
      try writing(in: session) { (portion) throws(CommandFailure) in
        try items.write(from: source, revealingSecrets: reveal, in: session, to: portion)
      }
      return items
    }
    // Without --reveal it is written once it is known to hold no secret.
    let isHeld = !dryRun.isOn && !format.needsSecrets
    var held = SensitiveBuffer()
    try items.write(from: source, revealingSecrets: reveal, in: session) { (portion) throws(CommandFailure) in
      if isHeld { held.append(portion) }
    }
    guard reveal || items.secretCount == 0 else {
      throw ExportedItems.missingRevealFlag(Self.shown(output), format, count: items.secretCount)
    }
    if isHeld { try writing(in: session) { (portion) throws(CommandFailure) in try held.withBytes(portion) } }
    return items
  }

  /// What stands once the file has its name.
  var written: DoneChange { DoneChange("\(output) was written") }

  private func writing(
    in session: Session,
    _ body: ((UnsafeRawBufferPointer) throws(CommandFailure) -> Void) throws(CommandFailure) -> Void
  ) throws(CommandFailure) {
    guard output != "-" else { return try session.write(to: output, body) }
    try session.changing(written) { () throws(CommandFailure) in try session.write(to: output, body) }
  }

  private func say(_ items: ExportedItems, _ format: ExportFormat, in session: Session) throws(CommandFailure) {
    if session.isJSON {
      // On standard output the export is the one document itself.
      if output != "-" || dryRun.isOn { try session.answer(result(items)) }
      return items.warn(in: session)
    }
    let did = dryRun.isOn ? "Would export" : "Exported"
    let note =
      format.isDocument
      ? reveal ? items.revealedNote : " (without secrets; --reveal includes them)"
      : items.secretCount > 0 ? " (in plain text)" : ""
    let sentence =
      "\(did) \(HumanReadable.count(items.count, format.noun)) from \(UntrustedText.escaped(items.name)) to "
      + "\(UntrustedText.escaped(Self.shown(output)))\(note)."
    let deletion = output == "-" || dryRun.isOn ? nil : items.deletionSentence
    let sentences = [sentence] + [items.balance, items.filesSentence, deletion].compactMap(\.self)
    try announce(sentences.joined(separator: " "), in: session)
    if items.isFromArchive { session.note(BackupBlindSpots.line) }
    items.warn(in: session)
  }

  /// The document of `--json` where the export itself goes into a file.
  private func result(_ items: ExportedItems) -> JSONValue {
    let document: JSONValue = [
      "format": "export-result/1", "source": .string(items.name), "output": .string(output),
      "items": .count(items.count), "revealed": .boolean(reveal && items.revealedCount > 0),
      "secrets": .count(reveal ? items.revealedCount : 0),
      "unreadable": .object(items.unreadable.map { ($0.rawValue, JSONValue.count($1)) }),
      "dry_run": .boolean(dryRun.isOn),
    ]
    return document.adding(items.balanceFields + items.authenticatorFields + items.blindSpotFields)
  }

  /// Says what was exported, once it has left the program: beside it, where it is on standard output itself.
  func announce(_ sentence: String, in session: Session) throws(CommandFailure) {
    guard output == "-" else { return try session.announce(sentence) }
    try session.flush()
    session.note(sentence)
  }
}
