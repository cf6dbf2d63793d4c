import ArgumentParser
import CommandArguments
import CommandSession
import KeychainDatabases
import KeychainFormats
import Reports

/// `keyhaul simulator seed`: items of a backup, a device or a description are put into a Simulator's keychain.
struct SimulatorSeed: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Put items into a Simulator's keychain",
    usage: "keyhaul simulator seed SIMULATOR --from SOURCE [--app GROUP]",
    examples: [
      "keyhaul simulator seed ~/Library/Developer/CoreSimulator/Devices/UDID --from family.backup",
      "keyhaul simulator seed UDID --from old-phone --app TEAM.org.example.chat --yes",
    ],
    flags: ["--from", "--app", "--keep", "--password-file", "--dry-run", "--yes", "--json"])
  static let configuration = described(as: "seed")

  @OptionGroup var target: SimulatorArgument
  @Option(
    help: ArgumentHelp(
      "Where the items are from: a backup, a device, a dump, a database, or a description that comes with the program.",
      valueName: "source"),
    completion: .devicesAndFiles)
  var from: String
  @Option(help: ArgumentHelp("Only the items of this access group; may be repeated.", valueName: "group"))
  var app: [String] = []
  @Flag(help: "Keep the items that are there; otherwise those with the same primary key are replaced.") var keep = false
  @OptionGroup(title: "The archive's password") var password: PasswordFlags
  @OptionGroup(title: "Opening") var opening: OpeningOptions
  @OptionGroup var databaseKeys: DatabaseKeyOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var wait: WaitOptions
  @OptionGroup(title: "Flags of all verbs") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let simulator = try target.find(in: session)
    var source = try SourceItems.read(
      from, UnlockingOptions(password: password, opening: opening), databaseKeys, wait: wait.time, in: session)
    source.keep(groups: app)
    let items = source.items
    guard !items.isEmpty else {
      session.note("Nothing of \(HostileText.shown(source.name)) matches.")
      if session.isJSON { try session.answer(document(simulator, source, [], isDone: false)) }
      return .noMatch
    }
    let count = Amounts.count(items.count, "item")
    if dryRun.isOn {
      try session.announce("Would put \(count) of \(source.name) into \(simulator.name).")
    } else {
      session.note(SimulatorNote.untried)
      try session.confirm("Put \(count) into \(simulator.name)?", refusal: "putting items into \(simulator.name)")
    }
    var placements: [SimulatorKeychain.Placement] = []
    if !dryRun.isOn {
      let done = DoneChange(
        "\(count) of \(source.name) went into \(simulator.name)",
        look: "keyhaul inspect \(ShellWord.quoted(simulator.name)) --list")
      placements = try simulator.change(done, in: session) { (keychain) throws(KeychainDatabaseError) in
        var placements: [SimulatorKeychain.Placement] = []
        for item in items { placements.append(try keychain.put(item, replacing: !keep)) }
        return placements
      }
      let parts = [(SimulatorKeychain.Placement.added, "new"), (.replaced, "replaced"), (.kept, "there already")]
        .compactMap { placement, word in
          let count = placements.count { $0 == placement }
          return count == 0 ? nil : "\(Amounts.grouped(count)) \(word)"
        }
      let isIdle = placements.allSatisfy { $0 == .kept }
      try session.announce(
        isIdle
          ? "Nothing to do: \(count) of \(source.name) \(items.count == 1 ? "is" : "are") in \(simulator.name) already."
          : "Put \(count) of \(source.name) into \(simulator.name): \(parts.joined(separator: ", ")).")
    }
    if source.unreadableCount > 0 {
      session.warn(
        "\(Amounts.count(source.unreadableCount, "item")) of \(source.name) cannot be read and stayed out",
        why: "they open only on their device, or are damaged", try: "keyhaul inspect \(ShellWord.quoted(from)) --list")
    }
    if session.isJSON { try session.answer(document(simulator, source, placements, isDone: !dryRun.isOn)) }
    return source.unreadableCount > 0 ? .partial : .ok
  }

  private func document(
    _ simulator: FoundSimulator, _ source: SourceItems, _ placements: [SimulatorKeychain.Placement], isDone: Bool
  ) -> JSONValue {
    simulator.document(
      "seed",
      [
        ("source", .string(source.name)), ("items", .count(source.items.count)),
        ("added", .count(placements.count { $0 == .added })),
        ("replaced", .count(placements.count { $0 == .replaced })),
        ("kept", .count(placements.count { $0 == .kept })), ("unreadable", .count(source.unreadableCount)),
      ], isDryRun: dryRun.isOn)
  }
}
