import KeyhaulKit

/// A verb that answers about one backup, and in one call about many.
protocol BackupVerb: TabularVerb, Sendable {
  /// The backups and folders that are named.
  var paths: [String] { get }
  var many: ManyBackupsOptions { get }
  var unlocking: UnlockingOptions { get }
  /// Where the result goes, but for standard output.
  var output: String? { get }

  /// The same call about one backup alone, its answer a document on standard output.
  func alone(with path: String) -> Self
  /// Answers about the one backup that is named.
  func performAlone(in session: Session) throws -> CommandStatus
  /// Refuses what one call about many cannot have.
  func checkMany() throws(CommandFailure)
  /// Names what a call about many may have been meant to be, once nothing is wrong with it.
  func warnOfMany(in session: Session) throws(CommandFailure)
  /// The flags of the call that choose what one about a backup alone shows, as they are typed: "--list".
  var shownParts: [String] { get }
  /// What shapes an answer besides the backup and its password: "--list", "--to new-phone r17".
  func asked(in session: Session) throws -> [String]

  /// The rows of its document about one backup; `nil` where that has none.
  var rows: FieldTable? { get }
  /// What has rows where that is so.
  static var rowsAdvice: String { get }

  /// Whether an argument may be the name of a device.
  static var takesDevices: Bool { get }
  /// The facts of its documents that stand in a table.
  static var columns: [AnswerColumn] { get }
  /// The same in a few words for people; `nil` where the document has none.
  static func finding(in document: JSONValue) -> String?
}

extension BackupVerb {
  static var takesDevices: Bool { false }
  func warnOfMany(in _: Session) throws(CommandFailure) {}

  /// Answers about the one backup that is named, or about each of many.
  func perform(in session: Session) throws -> CommandStatus {
    guard try isAboutMany(session) else {
      session.chosen = try ChosenFields(chosen, of: rows, otherwise: Self.rowsAdvice)
      return try performAlone(in: session)
    }
    session.chosen = try ChosenFields(chosen, of: BackupAnswer.table)
    return try ManyBackupsRun(self, in: session).perform()
  }

  /// Whether an argument is the name of a device in the home folder.
  static func isDevice(_ argument: String, home: String) -> Bool {
    let name = argument.hasPrefix("device:") ? argument.dropFirst("device:".count) : argument[...]
    return !name.contains("/") && PathContent(of: "\(home)/\(name)") == .device
  }

  private func isAboutMany(_ session: Session) throws(CommandFailure) -> Bool {
    let isPage = common.isHTML || common.isJUnit
    let word = session.verb.split(separator: " ").last.map(String.init) ?? session.verb
    guard let first = paths.first else {
      guard many.pathsFrom != nil else {
        throw .usage("\(session.verb) needs \(word == "plan" ? "SOURCE" : "ARCHIVE")", try: "\(session.verb) -h")
      }
      return true
    }
    let isList = paths.count > 1 || many.isGiven || common.isNDJSON || common.isCSV
    if !isPage, !isList {
      // A name that is a device's too is for the verb to refuse.
      let home = try session.homeDirectory()
      guard !Self.takesDevices || !Self.isDevice(first, home: home) else { return false }
      return try BackupPlaces.areBackups(in: first)
    }
    guard isPage else { return true }
    guard !isList else {
      throw .usage(
        "--format \(common.format?.rawValue ?? "html") works with only one backup",
        why: "\(paths.count > 1 ? "\(paths.count) were given" : "\(many.given ?? "the command") is for many backups")",
        try: "--format text, json, ndjson or csv")
    }
    return false
  }
}
