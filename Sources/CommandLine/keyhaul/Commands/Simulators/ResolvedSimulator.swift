import KeyhaulKit
import Reports

/// A Simulator's keychain that was read.
final class ResolvedSimulator {
  /// The keychain as it was read.
  let dump: ResolvedDump
  let database: KeychainDatabase
  let rows: [KeychainDatabase.DecryptedRow]
  var name: String { dump.name }
  /// The target for planning a restore.
  private(set) lazy var target = SimulatorTarget(named: name, rows: rows)
  /// The access groups of all rows.
  private(set) lazy var groups = Set(rows.compactMap(\.accessGroup))

  /// Creates a Simulator from its keychain.
  ///
  /// - Throws: `.refused` for another tool's dump.
  convenience init(_ dump: ResolvedDump) throws(CommandError) {
    guard let database = dump.database else {
      throw CommandError(
        .refused, "\(dump.name) is a dump, which Keyhaul does not change",
        why: "only the tools that wrote it could read the result",
        try: "keyhaul simulator seed, which copies its items")
    }
    self.init(dump: dump, database: database.database, rows: database.rows)
  }

  private init(dump: ResolvedDump, database: KeychainDatabase, rows: [KeychainDatabase.DecryptedRow]) {
    self.dump = dump
    self.database = database
    self.rows = rows
  }

  /// Rejects a keychain if its write-ahead log or journal does not match the database, because the log may contain more
  /// rows.
  func rejectUnmatchedLog(_ message: String, try advice: String) throws(CommandError) {
    guard ![.none, .applied, .rolledBack].contains(database.journalStatus) else { return }
    throw CommandError(
      .refused, message, why: "its log (-wal) does not match it, and may contain items", try: advice)
  }

  /// Returns the completed change of the keychain, for messages.
  func committedChange(_ clause: String) -> CommittedChange {
    CommittedChange(clause, inspectCommand: "keyhaul inspect \(ShellQuoting.quote(name)) --list")
  }

  /// Locks the database file, changes the database and commits the changes.
  ///
  /// - Parameters:
  ///   - change: The completed change, for messages.
  ///   - isDryRun: Whether this is a dry run, which does everything except the commit.
  ///   - body: Makes the changes. If it throws, they are undone.
  /// - Throws: An error with stage `afterCommit` if the change was made but a later step failed. Any other error states
  ///   that nothing was changed, or that the keychain may have been changed.
  func change<Result, Failure: ExplainedError>(
    _ change: CommittedChange, isDryRun: Bool = false, in session: Session,
    _ body: (SimulatorKeychain) throws(Failure) -> Result
  ) throws(CommandError) -> Result {
    try requireShutDown()
    let keychain = try explainingErrors { () throws(KeyhaulError) in try lockedKeychain() }
    let result = try explainingErrors { () throws(Failure) in try body(keychain) }
    if isDryRun { return result }
    try Interruption.check()
    try explainingErrors { () throws(KeyhaulError) in
      try session.committing(change) { () throws(KeyhaulError) in try keychain.commit(changing: database.image) }
    }
    return result
  }

  /// Replaces the keychain with a snapshot, byte for byte.
  ///
  /// - Throws: The same errors as `change`.
  func restore(_ snapshot: ResolvedSimulator, _ change: CommittedChange, in session: Session) throws(CommandError) {
    try requireShutDown()
    try Interruption.check()
    try explainingErrors { () throws(KeyhaulError) in
      try session.committing(change) { () throws(KeyhaulError) in
        try SimulatorKeychain.replace(at: dump.path, with: snapshot.database, changing: database.image)
      }
    }
  }

  /// Rejects changing the keychain of a running Simulator, whose daemon has the database open.
  func requireShutDown() throws(CommandError) {
    guard let simulator = InstalledSimulator(ofKeychain: dump.path), let state = simulator.state, state != .shutDown
    else { return }
    throw CommandError(
      .busy, "\(name) is not shut down", why: "its device.plist says that it is \(state.word); nothing was changed",
      try: "xcrun simctl shutdown \(ShellQuoting.quote(simulator.udid))")
  }

  /// Locks the database file. Rejects a database that has changed since it was read, or that SQLite reads differently.
  private func lockedKeychain() throws(KeyhaulError) -> SimulatorKeychain {
    let keychain = try SimulatorKeychain(path: dump.path)
    // Compares the contents, not the files, because SQLite may have rolled back an interrupted change.
    guard try !keychain.isUnchanged(since: database.image) else { return keychain }
    switch database.journalStatus {
    case .none, .applied, .partiallyApplied, .rolledBack, .journalUnreadable:
      throw KeyhaulError(.databaseBusy, "another process has changed it since Keyhaul read it")
    case .unreadable, .unrelated:
      throw KeyhaulError(
        .unchangeable, "SQLite reads other content in it than Keyhaul, because its log or journal does not match it")
    }
  }

  private func explainingErrors<Value, Failure: ExplainedError>(
    _ body: () throws(Failure) -> Value
  ) throws(CommandError) -> Value {
    do throws(Failure) {
      return try body()
    } catch {
      throw commandError(for: error)
    }
  }

  private func commandError(for error: any ExplainedError) -> CommandError {
    let message: String
    var why = "\(error.reason); nothing was changed"
    switch (error.stage, (error as? KeyhaulError)?.code) {
    case (.afterCommit, _):
      message = "\(name) may not be on the disk yet"
      why = "\(error.reason); until the change is on the disk, a power failure may undo it"
    case (.beforeCommit, .databaseBusy): message = "\(name) is in use"
    case (.beforeCommit, .databaseDuplicate): message = "\(name) already has this item"
    case (.beforeCommit, .unknownOutcome):
      message = "\(name) may have been changed"
      why = error.reason
    case (.beforeCommit, _): message = "cannot change \(name)"
    }
    var failure = CommandError(
      CommandExitStatus(error.category), message, why: why, try: error.commandLineAdvice, of: error.systemReason)
    failure.stage = error.stage
    return failure
  }

  /// Returns the document of a change (`simulator-change/1`).
  ///
  /// - Parameters:
  ///   - action: The name of the change, such as "seed" or "reset".
  ///   - members: The members that depend on the action.
  func document(_ action: String, _ members: [(String, JSONValue)], isDryRun: Bool) -> JSONValue {
    let document: JSONValue = ["format": "simulator-change/1", "simulator": .string(name), "action": .string(action)]
    return document.adding(members + [("dry_run", .boolean(isDryRun))])
  }
}

extension KeychainDatabase.DecryptedRow {
  /// The access group in the row's column, which is also available if the row cannot be decrypted.
  var accessGroup: String? {
    guard case .text(let group)? = row.columns[.accessGroup] else { return nil }
    return String(decoding: group, as: UTF8.self)
  }
}
