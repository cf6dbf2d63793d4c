import ArgumentParser
import KeyhaulKit
import Reports

/// The argument that names a Simulator.
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
  /// - Throws: `.notFound` or `.usage` if no Simulator or several have the name; `.refused` if the path is not that of
  ///   a keychain database.
  func find(in session: Session) throws(CommandError) -> ResolvedSimulator {
    let path = try path(session.environment)
    guard case .dump(let database) = try SourceResolver(session).backupOrDump(path), database.isDatabase else {
      throw CommandError(
        .refused, "\(path) is not a Simulator's keychain",
        why: "there is no keychain-2-debug.db at this path or in its data/Library/Keychains",
        try: "keyhaul simulator list")
    }
    return try ResolvedSimulator(database)
  }

  /// Returns the folder of the Simulator with this name, or the argument itself if it is a path.
  private func path(_ environment: [String: String]) throws(CommandError) -> String {
    guard !simulator.contains("/"), PathContent(of: simulator) == .absent else { return simulator }
    let directory = InstalledSimulator.standardDirectory(environment)
    let all = InstalledSimulator.all(in: directory)
    let matches = all.filter { $0.isNamed(by: simulator) }
    if matches.count > 1 {
      let names = matches.map { "\($0.udid)\($0.runtime.map { " (\(UntrustedText.escaped($0)))" } ?? "")" }
      throw .usage(
        "\(simulator) could mean several Simulators", why: "there are \(HumanReadable.list(names))",
        try: "the UDID, such as \(ShellQuoting.quote(matches[0].udid))")
    }
    if let match = matches.first { return match.path }
    guard !all.isEmpty else { return simulator }
    let near = EditDistance.nearest(to: simulator, among: all.flatMap { [$0.udid, $0.name].compactMap(\.self) })
    throw CommandError(
      .notFound, simulator == "booted" ? "no Simulator is booted" : "there is no Simulator named \(simulator)",
      why: "\(directory) has \(HumanReadable.count(all.count, "other Simulator"))",
      try: near.map { ShellQuoting.quote($0) } ?? "keyhaul simulator list")
  }
}

/// A Simulator's keychain that was read.
final class ResolvedSimulator {
  /// The keychain as it was read.
  let dump: ResolvedDump
  let database: KeychainDatabase
  let rows: [KeychainDatabase.DecryptedRow]
  /// The target for planning a restore.
  private(set) lazy var target = SimulatorTarget(named: name, rows: rows)

  var name: String { dump.name }
  /// The access groups of all rows.
  private(set) lazy var groups = Set(rows.compactMap(\.accessGroup))

  /// Creates a Simulator from its keychain.
  ///
  /// - Throws: `.refused` for another tool's dump.
  convenience init(_ dump: ResolvedDump) throws(CommandError) {
    guard let rows = dump.database else {
      throw CommandError(
        .refused, "\(dump.name) is a dump, which Keyhaul does not change",
        why: "only the tools that wrote it could read the result",
        try: "keyhaul simulator seed, which copies its items")
    }
    self.init(dump: dump, database: rows.database, rows: rows.rows)
  }

  private init(dump: ResolvedDump, database: KeychainDatabase, rows: [KeychainDatabase.DecryptedRow]) {
    self.dump = dump
    self.database = database
    self.rows = rows
  }

  /// Locks the database, changes it and commits the changes.
  ///
  /// - Parameters:
  ///   - change: The completed change, for messages.
  ///   - isDryRun: Whether this is a dry run, which does everything except the commit.
  ///   - body: Makes the changes. If it throws, they are undone.
  /// - Throws: An error with stage `afterCommit` if the change was made but a later step failed. Any other error states
  ///   that nothing was changed, or that this is unknown.
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
    do throws(Failure) { return try body() } catch { throw failure(error) }
  }

  private func failure(_ error: any ExplainedError) -> CommandError {
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
      CommandExitStatus(error.category), message, why: why, try: error.call, of: error.systemReason)
    failure.stage = error.stage
    return failure
  }

  /// Returns the document of a change (`simulator-change/1`).
  func document(_ action: String, _ fields: [(String, JSONValue)], isDryRun: Bool) -> JSONValue {
    let document: JSONValue = ["format": "simulator-change/1", "simulator": .string(name), "action": .string(action)]
    return document.adding(fields + [("dry_run", .boolean(isDryRun))])
  }
}

/// The intact items of a Simulator's keychain, to find those that need not be written again.
struct ExistingItems {
  /// The items by digest.
  private var items: [[UInt8]: [ExistingItem]] = [:]

  private struct ExistingItem {
    let item: KeychainItem
    let appClip: Int64
  }

  /// Collects the intact items.
  ///
  /// - Parameter rows: The rows of the keychain. A damaged row, or one whose columns differ from its attributes, is not
  ///   intact and will be replaced.
  init(_ rows: [KeychainDatabase.DecryptedRow]) {
    for row in rows where row.hasMatchingDigest == true && row.differingColumns.isEmpty {
      guard var item = row.result.item, let digest = row.row.digest else { continue }
      if let control = row.result.accessControl {
        // Keyhaul writes an access control with a class and constraints only, so one with other members is not equal.
        guard control.members.entries.count == (control.constraints == nil ? 1 : 2) else { continue }
        if let constraints = control.constraints { item[.accessControl] = .dictionary(constraints) }
      }
      items[digest, default: []].append(
        ExistingItem(item: Self.comparable(item), appClip: row.row.columns[.appClip]?.integerValue ?? 0))
    }
  }

  /// Returns whether an equal item exists: with the same attributes and secrets, except the persistent reference.
  func contains(_ item: KeychainItem) -> Bool {
    guard let digest = try? item.digest(), let existing = items[digest] else { return false }
    let appClip = item[.appClip]?.integerValue ?? 0
    let comparable = Self.comparable(item)
    return existing.contains { $0.appClip == appClip && Self.areEqual($0.item, comparable) }
  }

  private static func areEqual(_ item: KeychainItem, _ other: KeychainItem) -> Bool {
    item.kind == other.kind && item.attributes == other.attributes && item.secrets.count == other.secrets.count
      && item.secrets.allSatisfy { other.secrets[$0.key]?.constantTimeEquals($0.value) == true }
  }

  /// Returns an item without its persistent reference, which is not compared, and without its App Clip mark, which is
  /// compared separately.
  private static func comparable(_ item: KeychainItem) -> KeychainItem {
    var item = item
    item[.persistentReference] = nil
    item[.appClip] = nil
    return item
  }
}

extension KeychainDatabase.DecryptedRow {
  /// The access group in the row's column, which is also available if the row cannot be decrypted.
  var accessGroup: String? {
    guard case .text(let group)? = row.columns[.accessGroup] else { return nil }
    return String(decoding: group, as: UTF8.self)
  }
}
