import KeyhaulKit
import Reports

/// A command that processes one backup, or many in one call.
protocol BatchCommand: TabularCommand, DecryptingCommand, Sendable {
  // MARK: The call

  /// The backups and folders that the user named.
  var paths: [String] { get set }
  var batchOptions: BatchOptions { get }
  /// The output file; `nil` if the result goes to standard output.
  var output: String? { get }
  /// Whether an argument may be the name of a device.
  static var acceptsDevices: Bool { get }
  /// Returns the requested case report; `nil` if none was requested.
  func caseRequest() throws(CommandError) -> CaseOptions.Request?
  /// Rejects flags that do not work with many backups.
  func validateBatch() throws(CommandError)
  /// Warns if a call with several arguments was probably meant differently. Called after all checks.
  func warnAboutArguments(in session: Session) throws(CommandError)

  // MARK: Variants of the command

  /// Returns the command that lists the backups in folders, for a call without an argument.
  func listing(of folders: [String]) throws -> any BatchCommand
  /// Whether a call without an argument lists the known backups and succeeds. Otherwise such a call is an error.
  static var listsBackups: Bool { get }
  /// Returns this command for one backup, with its result on standard output and without questions.
  func command(for path: String) -> Self
  /// Returns this command without an output file and without a case report.
  func withoutOutput() -> Self

  // MARK: One backup

  /// Processes the backup that was named.
  func runSingle(in session: Session) throws -> CommandExitStatus
  /// The table of rows in the document for one backup, for `--fields`; `nil` if the document has no rows.
  var fieldTable: FieldTable? { get }
  /// The advice for `--fields` if the document has no rows: flags that produce rows.
  static var fieldsAdvice: String { get }

  // MARK: Inputs of a result

  /// Returns the parameters that affect a result, except the backup and its password: "--list", "--to new-phone r17".
  func resultParameters(in session: Session) throws -> [String]
  /// Returns the contents of files and the identities of devices that affect a result, each with its flag.
  func inputs(in session: Session) throws -> [(flag: String, content: [UInt8])]
  /// Whether the command tries an available password.
  var usesPassword: Bool { get }
  /// Whether the command needs the password of an encrypted backup.
  var needsPassword: Bool { get }

  // MARK: The list of results

  /// The CSV columns with values from the command's documents.
  static var csvColumns: [ResultColumn] { get }
  /// The text columns with values from the command's documents.
  static var textColumns: [ResultTextColumn] { get }
  /// The flags to suggest with a command for one backup, which select what it shows: "--list".
  var suggestedFlags: [String] { get }
  /// Returns the kind of result for a document and exit code; `nil` if the exit code determines it.
  static func result(in document: JSONValue, code: Int32) -> BackupResult?
  /// Returns the reason for a result other than success, if the document states the reason; otherwise `nil`.
  static func reason(in document: JSONValue, code: Int32) -> String?
  /// Returns the reason why a backup with exit code 0 needs attention, as a sentence; `nil` if the backup needs no
  /// attention.
  static func note(on result: BatchResult) -> String?
}

extension BatchCommand {
  static var acceptsDevices: Bool { false }
  static var listsBackups: Bool { false }
  static var textColumns: [ResultTextColumn] { [] }
  func caseRequest() throws(CommandError) -> CaseOptions.Request? { nil }
  func withoutOutput() -> Self { self }
  static func reason(in _: JSONValue, code _: Int32) -> String? { nil }
  static func note(on _: BatchResult) -> String? { nil }
  func warnAboutArguments(in _: Session) throws(CommandError) {}
  var usesPassword: Bool { true }
  func inputs(in _: Session) throws -> [(flag: String, content: [UInt8])] { [] }

  /// Runs the command for the backup that was named, or for each of many.
  func run(in session: Session) throws -> CommandExitStatus {
    guard !paths.isEmpty || batchOptions.pathsFrom != nil else { return try listKnownBackups(in: session) }
    if let request = try caseRequest() { return try CaseReportRun(self, request, in: session).run() }
    guard try isForManyBackups(session) else {
      session.chosenFields = try ChosenFields(fieldOptions, of: fieldTable, advice: Self.fieldsAdvice)
      return try runSingle(in: session)
    }
    session.chosenFields = try ChosenFields(fieldOptions, of: BatchResult.table)
    return try BatchRun(self, in: session).run()
  }

  /// Lists the backups that Finder, Apple Devices, iTunes or idevicebackup2 made, for a call without an argument.
  ///
  /// - Throws: `.usage` if there are no backups. Also `.usage` for every command except `inspect`, because the user must
  ///   name a backup.
  private func listKnownBackups(in session: Session) throws -> CommandExitStatus {
    let message = "\(session.commandName) needs a backup\(Self.acceptsDevices ? " or a device" : "")"
    let folders = KnownBackupFolders.all(session.environment)
    guard !folders.isEmpty else {
      let locations = KnownBackupFolders.standardFolders(session.environment).map { UntrustedText.escaped($0) }
      throw CommandError.usage(
        message,
        why: locations.isEmpty ? nil : "there are no backups in \(HumanReadable.list(locations, conjunction: "or"))",
        try: "\(session.commandName) PATH; PATH may also be a mounted macOS or Windows volume")
    }
    if Self.listsBackups { return try Self.runBatch(try listing(of: folders), in: session) }
    if !session.isJSON { _ = try Self.runBatch(try listing(of: folders), in: session) }
    let queue = BackupQueue(folders, pathList: nil)
    var backups: [String] = []
    while let queued = try queue.next() {
      if queued.fault == nil { backups.append(queued.path) }
    }
    let count = HumanReadable.count(backups.count, "backup")
    throw CommandError.usage(
      message, why: "none was named; \(count) \(backups.count == 1 ? "was" : "were") found",
      try: "\(session.commandName) \(ShellQuoting.argument(backups.first, placeholder: "PATH"))")
  }

  private static func runBatch(_ listing: some BatchCommand, in session: Session) throws -> CommandExitStatus {
    session.chosenFields = try ChosenFields(listing.fieldOptions, of: BatchResult.table)
    return try BatchRun(listing, in: session).run()
  }

  /// Returns whether the call is for many backups. If not, the command processes its only argument with `runSingle`.
  ///
  /// - Throws: `.usage` if many backups are requested in a format that works with only one backup.
  private func isForManyBackups(_ session: Session) throws(CommandError) -> Bool {
    guard let path = paths.first else { return true }
    let requestsList = paths.count > 1 || batchOptions.isGiven || common.isNDJSON || common.isCSV
    if common.isHTML || common.isJUnit {
      guard !requestsList else { throw singleBackupFormatError }
      return false
    }
    if requestsList { return true }
    // A path that is also the name of a device is rejected when the command processes the path.
    let isDeviceName = try session.isDeviceName(path)
    guard !Self.acceptsDevices || !isDeviceName else { return false }
    // With `--json`, every folder with backups gives a list. Scripts then get the same kind of document for each folder.
    // Without `--json`, a folder with one backup stands for that backup.
    return switch try BackupQueue.content(of: path) {
    case .none: false
    case .one: session.isJSON
    case .several: true
    }
  }

  /// The error if many backups are requested in a format that works with only one backup.
  private var singleBackupFormatError: CommandError {
    let format = common.format?.rawValue ?? "html"
    let reason =
      paths.count > 1
      ? "\(paths.count) were given" : "\(batchOptions.firstGivenFlag ?? "the command") is for many backups"
    return .usage(
      "--format \(format) works with only one backup", why: reason, try: "--format text, json, ndjson or csv")
  }
}
