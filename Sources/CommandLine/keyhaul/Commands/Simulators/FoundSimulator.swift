import ArgumentParser
import KeyhaulKit
import Reports

/// The Simulator that a command is for.
struct SimulatorArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The Simulator: its name, its UDID, booted, its folder, or its keychain.",
      discussion: "Names are those of the Simulators in ~/Library/Developer/CoreSimulator/Devices."),
    completion: .simulators)
  var simulator: String

  init() {}

  init(path: String) { simulator = path }

  /// Finds the Simulator and reads its keychain.
  ///
  /// - Throws: `.notFound` or `.usage` if no Simulator or several have the name; `.refused` if the path is not that of a
  ///   keychain database.
  func find(in session: Session) throws(CommandFailure) -> FoundSimulator {
    let path = try path(session.environment)
    guard case .dump(let found) = try ArgumentFinder(session).archiveOrDump(path), found.isDatabase else {
      throw CommandFailure(
        .refused, "\(path) is not a Simulator's keychain",
        why: "there is no keychain-2-debug.db at this path or in its "
          + "data/Library/Keychains", try: "keyhaul simulator list")
    }
    return try FoundSimulator(found)
  }

  /// Returns the folder of the Simulator with this name, or the argument itself if it is a path.
  private func path(_ environment: [String: String]) throws(CommandFailure) -> String {
    guard !simulator.contains("/"), PathContent(of: simulator) == .absent else { return simulator }
    let directory = InstalledSimulator.standardDirectory(environment)
    let all = InstalledSimulator.all(in: directory)
    let found = all.filter { $0.isMeant(by: simulator) }
    if found.count > 1 {
      let names = found.map { "\($0.udid)\($0.runtime.map { " (\(UntrustedText.escaped($0)))" } ?? "")" }
      throw .usage(
        "\(simulator) could mean several Simulators", why: "there are \(HumanReadable.list(names))",
        try: "the UDID, such as \(ShellQuoting.quote(found[0].udid))")
    }
    if let found = found.first { return found.path }
    guard !all.isEmpty else { return simulator }
    let near = EditDistance.nearest(to: simulator, among: all.flatMap { [$0.udid, $0.name].compactMap(\.self) })
    throw CommandFailure(
      .notFound, simulator == "booted" ? "no Simulator is booted" : "there is no Simulator named \(simulator)",
      why: "\(directory) has \(HumanReadable.count(all.count, "other Simulator"))",
      try: near.map { ShellQuoting.quote($0) } ?? "keyhaul simulator list")
  }
}

/// A Simulator's keychain as it was read.
final class FoundSimulator {
  let found: FoundDump
  let database: KeychainDatabase
  let rows: [KeychainDatabase.DecryptedRow]
  /// The target for planning a restore.
  private(set) lazy var target = SimulatorTarget(named: name, rows: rows)

  var name: String { found.typed }
  /// The access groups of all rows.
  private(set) lazy var groups = Set(rows.compactMap(\.accessGroup))

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

  private init(found: FoundDump, database: KeychainDatabase, rows: [KeychainDatabase.DecryptedRow]) {
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
    try requireShutDown()
    let keychain = try told { () throws(KeyhaulError) in try held() }
    let result = try told { () throws(Failure) in try body(keychain) }
    if isRehearsed { return result }
    try Interruption.check()
    try told { () throws(KeyhaulError) in
      try session.changing(done) { () throws(KeyhaulError) in try keychain.commit(changing: database.image) }
    }
    return result
  }

  /// Replaces the keychain by a snapshot, byte for byte.
  ///
  /// - Throws: As `change`.
  func restore(_ snapshot: FoundSimulator, _ done: DoneChange, in session: Session) throws(CommandFailure) {
    try requireShutDown()
    try Interruption.check()
    try told { () throws(KeyhaulError) in
      try session.changing(done) { () throws(KeyhaulError) in
        try SimulatorKeychain.replace(at: found.path, with: snapshot.database, changing: database.image)
      }
    }
  }

  /// Refuses to change the keychain of a Simulator that is running: its daemon has the database open.
  func requireShutDown() throws(CommandFailure) {
    guard let simulator = InstalledSimulator(ofKeychain: found.path), let state = simulator.state, state != .shutDown
    else { return }
    throw CommandFailure(
      .busy, "\(name) is not shut down", why: "its device.plist says that it is \(state.word); nothing was changed",
      try: "xcrun simctl shutdown \(ShellQuoting.quote(simulator.udid))")
  }

  private func held() throws(KeyhaulError) -> SimulatorKeychain {
    let keychain = try SimulatorKeychain(path: found.path)
    // Compares the content, not the files: SQLite has already undone any interrupted change.
    guard try !keychain.isUnchanged(since: database.image) else { return keychain }
    switch database.journalStatus {
    case .none, .applied, .partiallyApplied, .rolledBack, .journalUnreadable:
      throw KeyhaulError(.databaseBusy, "another process has changed it since Keyhaul read it")
    case .unreadable, .unrelated:
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
  init(_ rows: [KeychainDatabase.DecryptedRow]) {
    for row in rows where row.hasMatchingDigest == true && row.differingColumns.isEmpty {
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

extension KeychainDatabase.DecryptedRow {
  /// The access group that the row's column states, also of a row that cannot be decrypted.
  var accessGroup: String? {
    guard case .text(let group)? = row.columns[.accessGroup] else { return nil }
    return String(decoding: group, as: UTF8.self)
  }
}
