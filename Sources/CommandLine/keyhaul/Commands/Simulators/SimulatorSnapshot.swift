import ArgumentParser
import KeyhaulKit
import Reports

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
      "The file to write, with mode 0600. It contains the whole keychain, unencrypted.", valueName: "file"),
    completion: .file())
  var output: String
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let simulator = try target.find(in: session)
    let log = simulator.database.log
    guard [.none, .applied, .takenBack].contains(log) else {
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
      DoneChange("\(simulator.name) was saved as \(output)", look: "keyhaul inspect \(ShellQuoting.quote(output))")
    ) { () throws(CommandFailure) in try ReportFile.write(simulator.database.image, to: output) }
    let count = HumanReadable.count(simulator.rows.count, "row")
    try session.announce("Saved \(simulator.name) with \(count) as \(output). The file's secrets are not encrypted.")
    if session.isJSON {
      try session.answer(
        simulator.document(
          "snapshot", [("output", .string(output)), ("rows", .count(simulator.rows.count))], isDryRun: false))
    }
    return .ok
  }
}

/// `keyhaul simulator reset`: the items of an app are gone from a Simulator's keychain, and all others stay.
struct SimulatorReset: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Delete an app's items from a Simulator's keychain",
    usage: "keyhaul simulator reset SIMULATOR --app GROUP",
    examples: ["keyhaul simulator reset ~/Library/Developer/CoreSimulator/Devices/UDID --app TEAM.org.example.chat"],
    flags: ["--app", "--dry-run", "--yes", "--json"])
  static let configuration = described(as: "reset")

  @OptionGroup var target: SimulatorArgument
  @Option(
    help: ArgumentHelp("The app's access group, as it appears in its items. May be repeated.", valueName: "group"))
  var app: [String]
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let simulator = try target.find(in: session)
    let groups = Set(app)
    let count = simulator.rows.count { row in
      guard case .text(let group)? = row.row.columns[.accessGroup] else { return false }
      return groups.contains(String(decoding: group, as: UTF8.self))
    }
    guard count > 0 else {
      let others = Set(simulator.rows.compactMap { $0.opened.item?.accessGroup })
      let near = app.first.flatMap { EditDistance.nearest(to: $0, among: others.sorted()) }
      session.note(
        "No item of \(UntrustedText.escaped(simulator.name)) has this access group"
          + (near.map { "; \(UntrustedText.escaped($0)) is similar." } ?? "."))
      if session.isJSON { try session.answer(simulator.document("reset", [("removed", 0)], isDryRun: dryRun.isOn)) }
      return .noMatch
    }
    let items = HumanReadable.count(count, "item")
    var removed = 0
    if dryRun.isOn {
      try session.announce("Would delete \(items) from \(simulator.name).")
    } else {
      session.note(SimulatorNote.untried)
      try session.confirm("Delete \(items) from \(simulator.name)?", refusal: "deleting items from \(simulator.name)")
      let done = DoneChange(
        "\(items) \(count == 1 ? "was" : "were") deleted from \(simulator.name)",
        look: "keyhaul inspect \(ShellQuoting.quote(simulator.name)) --list")
      removed = try simulator.change(done, in: session) { (keychain) throws(KeyhaulError) in
        try keychain.removeItems(ofGroups: app)
      }
      try session.announce("Deleted \(HumanReadable.count(removed, "item")) from \(simulator.name).")
    }
    if session.isJSON {
      try session.answer(simulator.document("reset", [("removed", .count(removed))], isDryRun: dryRun.isOn))
    }
    return .ok
  }
}
