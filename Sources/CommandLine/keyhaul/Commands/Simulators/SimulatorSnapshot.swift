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
    guard [.none, .applied, .rolledBack].contains(simulator.database.journalStatus) else {
      throw CommandError(
        .refused, "cannot save \(simulator.name) completely",
        why: "its log (-wal) does not match it, and may contain items",
        try: "start and shut down the Simulator, or copy both files")
    }
    if output == "-" {
      throw CommandError.usage(
        "a snapshot must be written to a file", why: "it contains the whole keychain unencrypted", try: "-o FILE")
    }
    try session.prepareOutput(output, inputs: simulator.dump.files)
    try session.committing(
      CommittedChange(
        "\(simulator.name) was saved as \(output)", inspectCommand: "keyhaul inspect \(ShellQuoting.quote(output))")
    ) { () throws(CommandError) in try ReportFile.write(simulator.database.image, to: output) }
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
    guard [.none, .applied, .rolledBack].contains(savedKeychain.database.journalStatus) else {
      throw CommandError(
        .refused, "cannot read \(snapshot) completely", why: "its log (-wal) does not match it, and may contain items",
        try: "a file that keyhaul simulator snapshot has written")
    }
    let currentRows = HumanReadable.count(simulator.rows.count, "row")
    let savedRows = HumanReadable.count(savedKeychain.rows.count, "row")
    if dryRun.isOn {
      try simulator.requireShutDown()
      try session.announce(
        "Would replace the \(currentRows) of \(simulator.name) with the \(savedRows) of \(snapshot).")
    } else {
      try session.confirm(
        "Replace the \(currentRows) of \(simulator.name) with the \(savedRows) of \(snapshot)?",
        action: "replacing the keychain of \(simulator.name)")
      let change = CommittedChange(
        "\(simulator.name) was restored from \(snapshot)",
        inspectCommand: "keyhaul inspect \(ShellQuoting.quote(simulator.name)) --list")
      try simulator.restore(savedKeychain, change, in: session)
      try session.announce("Restored \(simulator.name) from \(snapshot), with \(savedRows).")
    }
    if session.isJSON {
      try session.writeDocument(
        simulator.document(
          "restore-snapshot", [("source", .string(snapshot)), ("rows", .count(savedKeychain.rows.count))],
          isDryRun: dryRun.isOn))
    }
    return .ok
  }
}

/// `keyhaul simulator reset`: deletes the items of an app from a Simulator's keychain.
struct SimulatorReset: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Delete an app's items from a Simulator's keychain",
    usage: "keyhaul simulator reset SIMULATOR --app APP",
    examples: ["keyhaul simulator reset 'iPhone 16' --app org.example.chat"],
    flags: ["--app", "--dry-run", "--yes", "--json"])
  static let configuration = makeConfiguration(named: "reset")

  @OptionGroup var target: SimulatorArgument
  @Option(
    help: ArgumentHelp("The app's bundle identifier, or one of its access groups. May be repeated.", valueName: "app"))
  var app: [String]
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    let simulator = try target.find(in: session)
    let groups = try AppGroups.selected(by: app, among: simulator.groups, of: simulator.name)
    let rows = simulator.rows.filter { row in row.accessGroup.map(groups.contains) ?? false }
    let count = rows.count
    guard count > 0 else {
      let similarGroup = app.first.flatMap { AppGroups.nearest(to: $0, among: simulator.groups) }
      session.info(
        "No item of \(UntrustedText.escaped(simulator.name)) belongs to this app"
          + (similarGroup.map { "; \(UntrustedText.escaped($0)) is similar." } ?? "."))
      if session.isJSON {
        try session.writeDocument(simulator.document("reset", [("removed", 0)], isDryRun: dryRun.isOn))
      }
      return .noMatch
    }
    let items = HumanReadable.count(count, "item")
    var removedCount = 0
    if dryRun.isOn {
      try session.announce("Would delete \(items) from \(simulator.name):")
      try printItems(of: groups, in: simulator, session)
    } else {
      try session.confirm("Delete \(items) from \(simulator.name)?", action: "deleting items from \(simulator.name)")
      let change = CommittedChange(
        "\(items) \(count == 1 ? "was" : "were") deleted from \(simulator.name)",
        inspectCommand: "keyhaul inspect \(ShellQuoting.quote(simulator.name)) --list")
      removedCount = try simulator.change(change, in: session) { (keychain) throws(KeyhaulError) in
        try keychain.removeItems(ofGroups: groups.sorted())
      }
      try session.announce("Deleted \(HumanReadable.count(removedCount, "item")) from \(simulator.name).")
    }
    if session.isJSON {
      try session.writeDocument(
        simulator.document("reset", [("removed", .count(removedCount))], isDryRun: dryRun.isOn))
    }
    return .ok
  }

  /// Prints the table of the items that would be deleted.
  private func printItems(
    of groups: Set<String>, in simulator: ResolvedSimulator, _ session: Session
  ) throws(CommandError) {
    guard !session.isJSON else { return }
    let entries = simulator.dump.dump.entries.filter { $0.identity.accessGroup.map(groups.contains) ?? false }
    try session.print(FoundItemTable.table(of: entries, style: session.resultStyle))
  }
}
