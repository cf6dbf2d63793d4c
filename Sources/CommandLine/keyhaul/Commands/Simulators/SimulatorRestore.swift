import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul simulator restore`: replaces a Simulator's keychain with a snapshot, byte for byte.
struct SimulatorRestore: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Replace a Simulator's keychain with a snapshot",
    usage: "keyhaul simulator restore SIMULATOR SNAPSHOT",
    examples: [
      "keyhaul simulator restore 'iPhone 16' signed-in.db",
      "keyhaul simulator restore 'iPhone 16' signed-in.db --yes",
    ],
    flags: ["--dry-run", "--yes", "--json"])
  static let configuration = makeConfiguration(named: "restore")

  @OptionGroup var target: SimulatorArgument
  @Argument(help: "The file that simulator snapshot has written.", completion: .file()) var snapshot: String
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    let simulator = try target.find(in: session)
    let savedKeychain = try SimulatorArgument(path: snapshot.contains("/") ? snapshot : "./\(snapshot)").find(
      in: session)
    try savedKeychain.rejectUnmatchedLog(
      "cannot read \(snapshot) completely", try: "a file that keyhaul simulator snapshot has written")
    try restore(savedKeychain, to: simulator, in: session)
    if session.isJSON {
      try session.writeDocument(
        simulator.document(
          "restore-snapshot", [("source", .string(snapshot)), ("rows", .count(savedKeychain.rows.count))],
          isDryRun: dryRun.isOn))
    }
    return .ok
  }

  /// Replaces the Simulator's keychain after the user has agreed. In a dry run, only announces the replacement.
  private func restore(
    _ savedKeychain: ResolvedSimulator, to simulator: ResolvedSimulator, in session: Session
  ) throws(CommandError) {
    let currentRows = HumanReadable.count(simulator.rows.count, "row")
    let savedRows = HumanReadable.count(savedKeychain.rows.count, "row")
    if dryRun.isOn {
      try simulator.requireShutDown()
      return try session.announce(
        "Would replace the \(currentRows) of \(simulator.name) with the \(savedRows) of \(snapshot).")
    }
    try session.confirm(
      "Replace the \(currentRows) of \(simulator.name) with the \(savedRows) of \(snapshot)?",
      action: "replacing the keychain of \(simulator.name)")
    try simulator.restore(
      savedKeychain, simulator.committedChange("\(simulator.name) was restored from \(snapshot)"), in: session)
    try session.announce("Restored \(simulator.name) from \(snapshot), with \(savedRows).")
  }
}
