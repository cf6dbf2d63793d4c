import ArgumentParser
import KeyhaulKit
import Reports

/// The Simulator that a verb means.
struct SimulatorArgument: ParsableArguments {
  @Argument(
    help: "The Simulator: its folder, its keychain's folder, or keychain-2-debug.db itself.", completion: .file())
  var simulator: String

  init() {}

  init(path: String) { simulator = path }

  /// Looks it up and reads it.
  ///
  /// - Throws: `.refused` for what is not a keychain's own database.
  func find(in session: Session) throws(CommandFailure) -> FoundSimulator {
    guard case .dump(let found) = try ArgumentFinder(session).archiveOrDump(simulator), found.isDatabase else {
      throw CommandFailure(
        .refused, "\(simulator) is not a Simulator's keychain",
        why: "there is no keychain-2-debug.db at this path or in its "
          + "data/Library/Keychains", try: "keyhaul simulator list")
    }
    return try FoundSimulator(found)
  }
}

/// A Simulator's keychain as it was read.
final class FoundSimulator {
  let found: FoundDump
  let database: KeychainDatabase
  let rows: [KeychainDatabase.OpenedRow]
  /// The target for planning a restore.
  private(set) lazy var target = SimulatorTarget(named: name, rows: rows)

  var name: String { found.typed }

  /// - Throws: `.refused` for a dump, which is not a Simulator's keychain.
  convenience init(_ found: FoundDump) throws(CommandFailure) {
    guard let rows = found.database else {
      throw CommandFailure(
        .refused, "\(found.typed) is a dump, which Keyhaul does not change",
        why: "only the tools that wrote it could read the result",
        try: "keyhaul simulator seed, which copies its items")
    }
    self.init(found: found, database: rows.database, rows: rows.rows)
  }

  private init(found: FoundDump, database: KeychainDatabase, rows: [KeychainDatabase.OpenedRow]) {
    self.found = found
    self.database = database
    self.rows = rows
  }

  /// Locks the database, changes it and commits the changes.
  ///
  /// - Parameters:
  ///   - done: The state after the change, for messages.
  ///   - isRehearsed: Whether to do everything except the commit.
  ///   - body: Makes the changes. If it throws, they are undone.
  /// - Throws: A failure of stage `afterCommit` if the change was made all the same. Any other failure states that
  ///   nothing was changed, or that this is unknown.
  func change<Result, Failure: ExplainedError>(
    _ done: DoneChange, isRehearsed: Bool = false, in session: Session,
    _ body: (SimulatorKeychain) throws(Failure) -> Result
  ) throws(CommandFailure) -> Result {
    let keychain = try told { () throws(KeyhaulError) in try held() }
    let result = try told { () throws(Failure) in try body(keychain) }
    if isRehearsed { return result }
    try Interruption.check()
    try told { () throws(KeyhaulError) in
      try session.changing(done) { () throws(KeyhaulError) in try keychain.commit(changing: database.image) }
    }
    return result
  }

  private func held() throws(KeyhaulError) -> SimulatorKeychain {
    let keychain = try SimulatorKeychain(path: found.path)
    // Compares the content, not the files: SQLite has already undone any interrupted change.
    guard try !keychain.isUnchanged(since: database.image) else { return keychain }
    switch database.log {
    case .none, .applied, .appliedInPart, .takenBack, .journalUnreadable:
      throw KeyhaulError(.databaseBusy, "another process has changed it since Keyhaul read it")
    case .unreadable, .foreign:
      throw KeyhaulError(
        .unchangeable, "SQLite reads other content in it than Keyhaul, because its log or journal does not match it")
    }
  }

  private func told<Value, Failure: ExplainedError>(
    _ body: () throws(Failure) -> Value
  ) throws(CommandFailure) -> Value {
    do throws(Failure) { return try body() } catch { throw failure(error) }
  }

  private func failure(_ error: any ExplainedError) -> CommandFailure {
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
    var failure = CommandFailure(
      CommandStatus(error.category), message, why: why, try: error.call, of: error.systemReason)
    failure.stage = error.stage
    return failure
  }

  /// What the changes of all verbs have in common in JSON (`simulator-change/1`).
  func document(_ action: String, _ fields: [(String, JSONValue)], isDryRun: Bool) -> JSONValue {
    let document: JSONValue = ["format": "simulator-change/1", "simulator": .string(name), "action": .string(action)]
    return document.adding(fields + [("dry_run", .boolean(isDryRun))])
  }
}

/// The items of a Simulator's keychain that are whole, to find those that need not be put in once more.
struct StandingItems {
  /// By the digest of all that counts of an item.
  private var items: [[UInt8]: [Standing]] = [:]

  private struct Standing {
    let item: KeychainItem
    let appClip: Int64
  }

  /// - Parameter rows: As they were read. One that is damaged, or whose columns say something else than its attributes,
  ///   is rewritten like one that differs.
  init(_ rows: [KeychainDatabase.OpenedRow]) {
    for row in rows where row.hasFittingDigest == true && row.differingColumns.isEmpty {
      guard var item = row.opened.item, let digest = row.row.digest else { continue }
      if let control = row.opened.accessControl {
        // What is written has a class and constraints, and nothing else.
        guard control.members.entries.count == (control.constraints == nil ? 1 : 2) else { continue }
        if let constraints = control.constraints { item[.accessControl] = .dictionary(constraints) }
      }
      items[digest, default: []].append(
        Standing(item: Self.plain(item), appClip: row.row.columns[.appClip]?.integerValue ?? 0))
    }
  }

  /// Whether the item is there as it would be written: with each of its attributes and its secret, but for the
  /// persistent reference, which is the row's.
  func hold(_ item: KeychainItem) -> Bool {
    guard let digest = try? item.digest(), let standing = items[digest] else { return false }
    let mark = item[.appClip]?.integerValue ?? 0
    let plain = Self.plain(item)
    return standing.contains { $0.appClip == mark && Self.areEqual($0.item, plain) }
  }

  private static func areEqual(_ item: KeychainItem, _ other: KeychainItem) -> Bool {
    item.kind == other.kind && item.attributes == other.attributes && item.secrets.count == other.secrets.count
      && item.secrets.allSatisfy { other.secrets[$0.key]?.constantTimeEquals($0.value) == true }
  }

  private static func plain(_ item: KeychainItem) -> KeychainItem {
    var item = item
    item[.persistentReference] = nil
    item[.appClip] = nil
    return item
  }
}
