import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul item find`: finds the items of a keychain that have the given attributes.
struct ItemFind: TabularCommand, DecryptingCommand {
  static let helpScreen = HelpScreen(
    sentence: "Find items on a device, in a backup, a database or a dump",
    usage: "keyhaul item find DEVICE|BACKUP|FOLDER [attributes] [--reveal] [--limit N]",
    examples: [
      "keyhaul item find old-phone --service chat.example",
      "keyhaul item find old-phone --service chat.example --account anna --reveal",
      "keyhaul item find old-phone --server '*.example.org' --sort changed --reverse --limit 5",
      "keyhaul item find Backups --service chat.example --passwords list",
    ],
    flags: [
      .init("--account, --service, --server", "which items; * matches any text"), "--kind", "--reveal",
      "--limit", "--sort", .init("--password-file", "the backup's password, if the items are in a backup"),
      "--format",
      "--output", "--json",
    ])
  static let configuration = makeConfiguration(named: "find")
  static let formats: [OutputFormat] = [.text, .json, .csv]

  @Option(help: ItemFilterOptions.kindHelp) var kind: ItemKindArgument?
  @OptionGroup(title: "Attributes") var attributes: ItemAttributeOptions
  @Flag(
    help: ArgumentHelp(
      "Print the secrets. In text output, exactly one item must match, and only its secret is printed; with --json, "
        + "every item includes its secret."))
  var reveal = false
  @Option(help: ArgumentHelp("Print at most this many items.", valueName: "n")) var limit: UInt32?
  @Option(
    help: ArgumentHelp(
      "Sort by kind, name, account, label, group, protection, created or changed.", valueName: "by"))
  var sort: ItemSortKey?
  @Flag(help: "Reverse the order.") var reverse = false
  @Option(
    name: .shortAndLong,
    help: ArgumentHelp(
      "Write the result to a file with mode 0600; - is standard output, even if it is a terminal.", valueName: "file"),
    completion: .file())
  var output: String?
  @OptionGroup var target: TargetKeychain
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @Option(
    help: ArgumentHelp(
      "In a folder of backups, a file that says where to read each backup's password. Each line is PATTERN file:PATH or "
        + "PATTERN command:COMMAND.",
      valueName: "file"),
    completion: .file())
  var passwords: String?
  @OptionGroup(title: "Opening the backup") var decryption: DecryptionOptions
  @OptionGroup var databaseKeys: DatabaseKeyOptions
  @OptionGroup var fieldOptions: FieldOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  /// The members of each element of `items` in `keychain-items/1`, and the members of its `attributes`, which can be
  /// selected directly.
  static let table = FieldTable(
    rows: "items",
    fields: [
      "index", "kind", "table", "protection", "readable", "attributes", "has_secret", "secret", "reason", "detail",
    ],
    nested: "attributes",
    nestedFields: Set(ItemKind.allCases.flatMap { AttributeTable.definitions(of: $0).map(\.code.rawValue) }).sorted())

  var filter: ItemFilterOptions { ItemFilterOptions(kind: kind, attributes: attributes) }

  func run(in session: Session) throws -> CommandExitStatus {
    session.chosenFields = try ChosenFields(fieldOptions, of: Self.table)
    if limit == 0 { throw CommandError.usage("--limit cannot be 0", try: "--limit 1") }
    if reverse, sort == nil {
      throw CommandError.usage("--reverse needs --sort", why: "no sort key was given", try: "--sort changed")
    }
    if try isForFolder(session) { return try searchFolder(in: session) }
    if reveal { try rejectTerminal(in: session) }
    let source = try target.find(accessOptions, databaseKeys, in: session)
    if let output, output != "-" { try session.prepareOutput(output, inputs: source.files + accessOptions.files) }
    let selection = try ItemSelection(filter)
    let result = try search(for: selection, in: source, accessOptions, session)
    if printsOnlySecret, !result.entries.isEmpty {
      try writeSecret(
        of: result.entries, omitsProtectedSecrets: result.document.omitsProtectedSecrets, in: session)
      return result.mayBeIncomplete ? .partial : .ok
    }
    try write(result, in: session)
    let status = reportStatus(of: result.entries, from: source, in: session)
    return result.mayBeIncomplete && status == .ok ? .partial : status
  }

  // MARK: The search

  /// Whether the result is a single secret. If so, the limit does not apply, because all matches must be known.
  private var printsOnlySecret: Bool { reveal && !common.isJSON && !common.isCSV }

  /// The matching items of a keychain.
  struct SearchResult {
    let entries: [KeychainEntry]
    /// The document of the items for `--json`.
    let document: ItemDocument
    /// Whether an item that cannot be decrypted may also match.
    var mayBeIncomplete = false
  }

  /// Searches a keychain.
  func search(
    for selection: ItemSelection, in source: ResolvedSource, _ accessOptions: BackupAccessOptions, _ session: Session
  ) throws -> SearchResult {
    let items: SearchableItems
    switch source {
    case .device(let device):
      return try device.withSession(.reading) { openDevice in
        let entries = try search(for: selection, on: openDevice)
        let indexes = session.isJSON ? try openDevice.keychain.indexes(of: Set(entries.map(\.rowReference))) : [:]
        let document = ItemDocument(source: ("device", openDevice.name), revealsSecrets: reveal)
        return SearchResult(entries: entries.map { $0.numbered(indexes) }, document: document)
      }
    case .backup(let backup):
      let loaded = try backup.open(storage: accessOptions.storage, in: session)
      let opened = try BackupUnlocker(loaded, accessOptions.decryption, in: session).open(with: accessOptions.password)
      items = SearchableItems(opened, named: loaded.name)
    case .dump(let dump):
      dump.warn(in: session)
      items = SearchableItems(dump)
    }
    try selection.rejectAppFlag(for: items.name)
    let entries = items.matching(selection)
    let mayBeIncomplete = items.reportUndecryptable(excluding: entries, for: selection, in: session)
    return SearchResult(
      entries: sorted(entries), document: items.document(revealsSecrets: reveal), mayBeIncomplete: mayBeIncomplete)
  }

  /// Returns the entries in the requested order, up to the limit.
  private func sorted(_ entries: [KeychainEntry]) -> [KeychainEntry] {
    let orderedEntries = sort?.sorted(entries, descending: reverse) ?? entries
    guard !printsOnlySecret, let limit else { return orderedEntries }
    return Array(orderedEntries.prefix(Int(limit)))
  }

  private func search(
    for selection: ItemSelection, on openDevice: DeviceSession
  ) throws(CommandError) -> [KeychainEntry] {
    let limit = printsOnlySecret ? nil : limit.map { Int($0) }
    // The database applies a limit in its own order.
    let databaseAppliesLimit = selection.query.condition == nil && sort == nil
    let entries = try selection.items(on: openDevice, wantsSecret: reveal, limit: databaseAppliesLimit ? limit : nil)
    return sorted(entries)
  }

  // MARK: The result

  /// Writes the items in the requested format.
  private func write(_ result: SearchResult, in session: Session) throws(CommandError) {
    let omitsProtectedSecrets = result.document.omitsProtectedSecrets
    if session.isJSON {
      try session.writeDocument(result.document, of: result.entries, to: output)
    } else if common.isCSV {
      let csv = FoundItemsCSV.table(
        of: result.entries, revealsSecrets: reveal, omitsProtectedSecrets: omitsProtectedSecrets)
      try writeCSV(csv, in: session)
    } else if !result.entries.isEmpty {
      try writeTable(of: result.entries, in: session)
    }
    if reveal, omitsProtectedSecrets { warnAboutProtected(result.entries, in: session) }
  }

  /// Returns the exit status, and reports if nothing matches or items cannot be read.
  private func reportStatus(
    of entries: [KeychainEntry], from source: ResolvedSource, in session: Session
  ) -> CommandExitStatus {
    let name = target.keychain
    guard !entries.isEmpty else {
      session.info("No item \(source.isDevice ? "on" : "in") \(UntrustedText.escaped(name)) matches.")
      return .noMatch
    }
    let unreadableEntries = entries.filter { $0.item == nil }
    guard let first = unreadableEntries.first else { return .ok }
    session.warn(
      "\(HumanReadable.count(unreadableEntries.count, "item")) of \(name) cannot be read\(source.isDevice ? "" : " here")",
      why: "the first is \(ItemText.nounWithArticle(first.kind)): \(Self.faultText(of: first))",
      try: source.isDevice
        ? "restore \(unreadableEntries.count == 1 ? "it" : "them") from a backup"
        : first.reason.map { "keyhaul explain \($0.rawValue)" } ?? "keyhaul inspect \(ShellQuoting.quote(name)) --list")
    return .partial
  }

  private static func faultText(of entry: KeychainEntry) -> String {
    entry.reasonDetail ?? entry.reason.map(\.explanation.headline) ?? "its key cannot be used"
  }

  private func writeTable(of entries: [KeychainEntry], in session: Session) throws(CommandError) {
    guard writesFile, let output else {
      return try session.print(FoundItemTable.table(of: entries, style: session.resultStyle))
    }
    let style = session.fileStyle
    let lines = FoundItemTable.table(of: entries, style: style).lines(style: style)
    try OutputFile.write(Array(lines.map { $0 + "\n" }.joined().utf8), to: output)
  }

  private func writeCSV(_ csv: SensitiveBytes, in session: Session) throws(CommandError) {
    try csv.withBytes { (csv) throws(CommandError) in
      guard writesCSVToTerminal(in: session) else { return try session.write(csv, to: output) }
      let escapedCSV = Self.escapedLines(of: csv)
      try escapedCSV.withBytes { (bytes) throws(CommandError) in try session.writeRaw(bytes) }
    }
  }

  /// Whether the result goes to a file.
  var writesFile: Bool { output.map { $0 != "-" } ?? false }

  /// Returns whether the result, if it is CSV, goes to a terminal.
  func writesCSVToTerminal(in session: Session) -> Bool {
    session.resultIsOnTerminal && (output == nil || output == "-")
  }

  /// Returns the lines of a table with escaped control characters, which a terminal would interpret.
  static func escapedLines(of table: UnsafeRawBufferPointer) -> SensitiveBuffer {
    var text = SensitiveBuffer()
    for line in CSV.lines(of: table) {
      UntrustedText.appendEscaped(line, to: &text)
      text.append(UInt8(ascii: "\n"))
    }
    return text
  }

  // MARK: Secrets

  /// Rejects showing a secret on a terminal, unless the user requested it with `-o -`.
  private func rejectTerminal(in session: Session) throws(CommandError) {
    guard output == nil, session.resultIsOnTerminal else { return }
    throw .usage(
      "a secret is not shown on a terminal by default", why: "it would stay on the screen and in its history",
      try: "a pipe, -o FILE, or -o - to show it anyway")
  }

  private func writeSecret(
    of entries: [KeychainEntry], omitsProtectedSecrets: Bool, in session: Session
  ) throws(CommandError) {
    guard let entry = entries.first, entries.count == 1 else {
      throw .usage(
        "--reveal prints one secret, and \(HumanReadable.count(entries.count, "item match", plural: "items match"))",
        why: "text output cannot tell them apart", try: "more attributes, or --json")
    }
    let name = DisplayWidth.cut(ItemText.name(entry.identity), columns: 60, ellipsis: "…")
    guard let item = entry.item else {
      throw CommandError(
        .damaged, "the item cannot be read", why: Self.faultText(of: entry), try: "restore it from a backup")
    }
    guard !omitsProtectedSecrets || !item.requiresAuthentication else {
      throw Self.authenticationError("\"\(name)\"")
    }
    guard let secret = item.secret else {
      throw CommandError(.failed, "\"\(name)\" has no secret", why: "it was stored without a secret")
    }
    try secret.withBytes { (bytes) throws(CommandError) in try session.write(bytes, to: output) }
  }

  private func warnAboutProtected(_ entries: [KeychainEntry], in session: Session) {
    let count = entries.count { $0.item?.requiresAuthentication == true }
    guard count > 0 else { return }
    let failure = Self.authenticationError(HumanReadable.count(count, "item"), isPlural: count != 1)
    session.warn(failure.message, why: failure.why, of: failure.errno)
  }

  private static func authenticationError(_ subject: String, isPlural: Bool = false) -> CommandError {
    CommandError(
      .failed, "\(subject) \(isPlural ? "require" : "requires") authentication",
      why: "an access control protects the secret, and a virtual device has no biometry",
      try: "find the item without --reveal")
  }
}
