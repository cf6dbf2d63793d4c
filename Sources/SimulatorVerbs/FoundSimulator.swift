import ArgumentParser
import CommandArguments
import CommandSession
import KeychainDatabases
import KeychainDumps
import KeychainFormats
import Reports

/// The Simulator that a verb means.
struct SimulatorArgument: ParsableArguments {
  @Argument(
    help: "The Simulator: its directory, the one of its keychain, or keychain-2-debug.db itself.", completion: .file())
  var simulator: String

  init() {}

  init(path: String) { simulator = path }

  /// Looks it up and reads it.
  ///
  /// - Throws: `.refused` for what is no keychain's own database.
  func find(in session: Session) throws(CommandFailure) -> FoundSimulator {
    guard case .dump(let found) = try ArgumentFinder(session).archiveOrDump(simulator), let rows = found.database else {
      throw CommandFailure(
        .refused, "\(simulator) is no Simulator's keychain",
        why: "neither it nor data/Library/Keychains in it is a keychain-2-debug.db", try: "keyhaul simulator list")
    }
    return FoundSimulator(found: found, database: rows.database, rows: rows.rows)
  }
}

/// A Simulator's keychain as it was read.
struct FoundSimulator {
  let found: FoundDump
  let database: KeychainDatabase
  let rows: [KeychainDatabase.OpenedRow]

  var name: String { found.typed }

  /// Holds it alone, changes it and makes the changes last; nothing is changed where that fails.
  func change<Result>(
    _ done: DoneChange, in session: Session, _ body: (SimulatorKeychain) throws(KeychainDatabaseError) -> Result
  ) throws(CommandFailure) -> Result {
    do throws(KeychainDatabaseError) {
      let keychain = try SimulatorKeychain(path: found.path)
      let result = try body(keychain)
      try session.changing(done) { () throws(KeychainDatabaseError) in try keychain.commit() }
      return result
    } catch {
      throw CommandFailure(
        CommandStatus(error.category),
        error.code == .busy ? "\(name) is in use" : "cannot change \(name)",
        why: "\(error.reason); nothing was changed", try: error.advice)
    }
  }

  /// What the changes of all verbs have in common in JSON (`simulator-change/1`).
  func document(_ action: String, _ fields: [(String, JSONValue)], isDryRun: Bool) -> JSONValue {
    let document: JSONValue = ["format": "simulator-change/1", "simulator": .string(name), "action": .string(action)]
    return document.adding(fields + [("dry_run", .boolean(isDryRun))])
  }
}
