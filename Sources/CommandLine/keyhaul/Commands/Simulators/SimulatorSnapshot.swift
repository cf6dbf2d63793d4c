import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul simulator snapshot`: saves a Simulator's keychain as one file.
struct SimulatorSnapshot: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Save a Simulator's keychain as one file",
    usage: "keyhaul simulator snapshot SIMULATOR -o FILE",
    examples: [
      "keyhaul simulator snapshot 'iPhone 16' -o signed-in.db",
      "keyhaul simulator snapshot ~/Library/Developer/CoreSimulator/Devices/UDID -o signed-in.db",
    ],
    flags: ["--output", "--yes", "--json"])
  static let configuration = makeConfiguration(named: "snapshot")

  @OptionGroup var target: SimulatorArgument
  @Option(
    name: .shortAndLong,
    help: ArgumentHelp(
      "The file to write, with mode 0600. It contains the whole keychain, unencrypted.", valueName: "file"),
    completion: .file())
  var output: String
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    let simulator = try target.find(in: session)
    try simulator.rejectUnmatchedLog(
      "cannot save \(simulator.name) completely", try: "start and shut down the Simulator, or copy both files")
    if output == "-" {
      throw CommandError.usage(
        "a snapshot must be written to a file", why: "it contains the whole keychain unencrypted", try: "-o FILE")
    }
    try session.prepareOutput(output, inputs: simulator.dump.files)
    try session.committing(CommittedChange("\(simulator.name) was saved as \(output)", at: output)) {
      () throws(CommandError) in try OutputFile.write(simulator.database.image, to: output)
    }
    let count = HumanReadable.count(simulator.rows.count, "row")
    try session.announce("Saved \(simulator.name) with \(count) as \(output). The file's secrets are not encrypted.")
    if session.isJSON {
      try session.writeDocument(
        simulator.document(
          "snapshot", [("output", .string(output)), ("rows", .count(simulator.rows.count))], isDryRun: false))
    }
    return .ok
  }
}
