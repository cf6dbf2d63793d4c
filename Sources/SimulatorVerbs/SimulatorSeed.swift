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
      if session.isJSON { try session.answer(document(simulator, source, [])) }
      return .noMatch
    }
    let placements = try put(source, into: simulator, in: session)
    if source.unreadableCount > 0 {
      session.warn(
        "\(Amounts.count(source.unreadableCount, "item")) of \(source.name) cannot be read and stayed out",
        why: "they open only on their device, or are damaged", try: "keyhaul inspect \(ShellWord.quoted(from)) --list")
    }
    if session.isJSON { try session.answer(document(simulator, source, placements)) }
    return source.unreadableCount > 0 ? .partial : .ok
  }

  /// Puts the items in, but for those that are there as they would be written.
  ///
  /// - Returns: What became of each; nothing where it is tried only.
  private func put(
    _ source: SourceItems, into simulator: FoundSimulator, in session: Session
  ) throws -> [SimulatorKeychain.Placement] {
    let standing = StandingItems(simulator.rows)
    let others = source.items.filter { !standing.hold($0) }
    let same = source.items.count - others.count
    let count = Amounts.count(source.items.count, "item")
    let wanted = "\(count) of \(source.name)"
    guard !others.isEmpty else {
      let are = source.items.count == 1 ? "is" : "are"
      try session.announce("Nothing to do: \(wanted) \(are) in \(simulator.name) already.")
      return dryRun.isOn ? [] : Array(repeating: .kept, count: same)
    }
    if dryRun.isOn {
      let already = same == 0 ? "" : "; \(Amounts.grouped(same)) of them \(same == 1 ? "is" : "are") there already"
      try session.announce("Would put \(wanted) into \(simulator.name)\(already).")
      return []
    }
    session.note(SimulatorNote.untried)
    try session.confirm("Put \(count) into \(simulator.name)?", refusal: "putting items into \(simulator.name)")
    let done = DoneChange(
      "\(wanted) went into \(simulator.name)", look: "keyhaul inspect \(ShellWord.quoted(simulator.name)) --list")
    let placements = try simulator.change(done, in: session) { (keychain) throws(KeychainDatabaseError) in
      var placements: [SimulatorKeychain.Placement] = []
      for item in others { placements.append(try keychain.put(item, replacing: !keep)) }
      return placements
    }
    let parts = [
      (placements.count { $0 == .added }, "new"), (placements.count { $0 == .replaced }, "replaced"),
      (same, "there already"), (placements.count { $0 == .kept }, "kept with other values"),
    ].filter { $0.0 > 0 }.map { "\(Amounts.grouped($0.0)) \($0.1)" }.joined(separator: ", ")
    try session.announce(
      placements.allSatisfy { $0 == .kept }
        ? "Put nothing of \(source.name) into \(simulator.name): \(parts)."
        : "Put \(wanted) into \(simulator.name): \(parts).")
    return placements + Array(repeating: .kept, count: same)
  }

  private func document(
    _ simulator: FoundSimulator, _ source: SourceItems, _ placements: [SimulatorKeychain.Placement]
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
