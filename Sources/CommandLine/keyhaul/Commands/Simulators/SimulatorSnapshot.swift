import ArgumentParser
import KeyhaulKit

/// `keyhaul simulator snapshot`: a Simulator's keychain as one file.
struct SimulatorSnapshot: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Save a Simulator's keychain as one file",
    usage: "keyhaul simulator snapshot SIMULATOR -o FILE",
    examples: ["keyhaul simulator snapshot ~/Library/Developer/CoreSimulator/Devices/UDID -o signed-in.db"],
    flags: ["--output", "--yes", "--json"])
  static let configuration = described(as: "snapshot")

  @OptionGroup var target: SimulatorArgument
  @Option(
    name: .shortAndLong,
    help: ArgumentHelp(
      "The file to write, with mode 0600; it holds the whole keychain unencrypted.", valueName: "file"),
    completion: .file())
  var output: String
  @OptionGroup(title: "Flags of all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let simulator = try target.find(in: session)
    let log = simulator.database.log
    guard log == .none || log == .applied else {
      throw CommandFailure(
        .refused, "cannot save \(simulator.name) completely",
        why: "its log (-wal) does not match it, and may contain items",
        try: "start and shut down the Simulator, or copy both files")
    }
    if output == "-" {
      throw CommandFailure.usage(
        "a snapshot must be written to a file", why: "it contains the whole keychain unencrypted", try: "-o FILE")
    }
    try session.prepareOutput(output, inputs: simulator.found.files)
    try session.changing(
      DoneChange("\(simulator.name) was saved as \(output)", look: "keyhaul inspect \(ShellWord.quoted(output))")
    ) { () throws(CommandFailure) in try ReportFile.write(simulator.database.image, to: output) }
    let count = Amounts.count(simulator.rows.count, "row")
    try session.announce("Saved \(simulator.name) with \(count) as \(output). Its secrets are not encrypted in it.")
    if session.isJSON {
      try session.answer(
        simulator.document(
          "snapshot", [("output", .string(output)), ("rows", .count(simulator.rows.count))], isDryRun: false))
    }
    return .ok
  }
}
