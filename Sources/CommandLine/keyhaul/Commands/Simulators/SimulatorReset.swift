import ArgumentParser
import KeyhaulKit
import Reports

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
    let selection = try AppGroups(selectedBy: app, among: simulator.groups, of: simulator.name)
    if let unmatchedApp = selection.unmatchedApp {
      announceNoMatch(of: unmatchedApp, in: simulator, session)
      if session.isJSON { try writeDocument(of: simulator, removedCount: 0, in: session) }
      return .noMatch
    }
    let groups = selection.groups
    let rows = simulator.rows.filter { row in row.accessGroup.map(groups.contains) ?? false }
    var removedCount = 0
    if dryRun.isOn {
      try session.announce("Would delete \(HumanReadable.count(rows.count, "item")) from \(simulator.name):")
      let entries = simulator.dump.contents.entries.filter { $0.identity.accessGroup.map(groups.contains) ?? false }
      try session.print(FoundItemTable.table(of: entries, style: session.resultStyle))
    } else {
      removedCount = try delete(rows.count, of: groups, from: simulator, in: session)
    }
    if session.isJSON { try writeDocument(of: simulator, removedCount: removedCount, in: session) }
    return .ok
  }

  /// Tells the user that no item belongs to the app, and names a similar access group.
  private func announceNoMatch(of unmatchedApp: String, in simulator: ResolvedSimulator, _ session: Session) {
    let similarGroup = AppGroups.nearest(to: unmatchedApp, among: simulator.groups)
    let owner = app.count == 1 ? "this app" : UntrustedText.escaped(unmatchedApp)
    session.info(
      "No item of \(UntrustedText.escaped(simulator.name)) belongs to \(owner)"
        + (similarGroup.map { "; \(UntrustedText.escaped($0)) is similar." } ?? "."))
  }

  /// Deletes the items of the access groups after the user has agreed.
  ///
  /// - Parameter count: The number of items in these groups.
  /// - Returns: The number of deleted items.
  private func delete(
    _ count: Int, of groups: Set<String>, from simulator: ResolvedSimulator, in session: Session
  ) throws(CommandError) -> Int {
    let items = HumanReadable.count(count, "item")
    try session.confirm("Delete \(items) from \(simulator.name)?", action: "deleting items from \(simulator.name)")
    let change = simulator.committedChange("\(items) \(count == 1 ? "was" : "were") deleted from \(simulator.name)")
    let removedCount = try simulator.change(change, in: session) { (keychain) throws(KeyhaulError) in
      try keychain.removeItems(ofGroups: groups.sorted())
    }
    try session.announce("Deleted \(HumanReadable.count(removedCount, "item")) from \(simulator.name).")
    return removedCount
  }

  private func writeDocument(
    of simulator: ResolvedSimulator, removedCount: Int, in session: Session
  ) throws(CommandError) {
    try session.writeDocument(
      simulator.document("reset", [("removed", .count(removedCount))], isDryRun: dryRun.isOn))
  }
}
