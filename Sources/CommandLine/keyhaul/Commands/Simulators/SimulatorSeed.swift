import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul simulator seed`: writes items of a backup, a device or a description into a Simulator's keychain.
struct SimulatorSeed: RunnableCommand, DecryptingCommand {
  static let helpScreen = HelpScreen(
    sentence: "Put items into a Simulator's keychain",
    usage: "keyhaul simulator seed SIMULATOR --from SOURCE [--app APP]",
    examples: [
      "keyhaul simulator seed 'iPhone 16' --from family.backup",
      "keyhaul simulator seed 'iPhone 16' --from old-phone --app org.example.chat --yes",
    ],
    flags: ["--from", "--app", "--keep", "--password-file", "--dry-run", "--yes", "--json"])
  static let configuration = makeConfiguration(named: "seed")

  @OptionGroup var target: SimulatorArgument
  @Option(
    help: ArgumentHelp(
      "Where to read the items from: a backup, a device, a dump, a database, or a description included with Keyhaul.",
      valueName: "source"),
    completion: .devicesAndFiles)
  var from: String
  @Option(
    help: ArgumentHelp(
      "Only the items of this app, by bundle identifier or access group; may be repeated.", valueName: "app"))
  var app: [String] = []
  @Flag(help: "Keep existing items. (By default, items with the same primary key are replaced.)") var keep = false
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @OptionGroup(title: "Opening the backup") var decryption: DecryptionOptions
  @OptionGroup var databaseKeys: DatabaseKeyOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    let simulator = try target.find(in: session)
    var source = try SourceItems.read(from, accessOptions, databaseKeys, in: session)
    let groups = Set(source.items.compactMap(\.accessGroup))
    if !app.isEmpty { source.keepOnly(groups: try AppGroups.selected(by: app, among: groups, of: source.name)) }
    guard !source.items.isEmpty else {
      let near = app.first.flatMap { AppGroups.nearest(to: $0, among: groups) }
      session.info(
        "No item in \(UntrustedText.escaped(source.name)) matches"
          + (near.map { "; \(UntrustedText.escaped($0)) is similar." } ?? "."))
      if session.isJSON {
        try session.writeDocument(document(simulator, source, Outcome(insertResults: [], equalCount: 0)))
      }
      return .noMatch
    }
    let outcome = try put(source, into: simulator, in: session)
    let tokenKeys = source.items.filter(\.hasToken)
    if let first = tokenKeys.first {
      session.warn(
        "\(HumanReadable.count(tokenKeys.count, "key")) of \(source.name) cannot be used in a Simulator",
        why:
          "the private key is in a Secure Enclave or on another token; the first is \(ItemText.name(ItemDescriptor(first)))",
        try: "keyhaul explain hardware-key")
    }
    if source.unreadableCount > 0 {
      session.warn(
        "left out \(HumanReadable.count(source.unreadableCount, "item")) of \(source.name) that cannot be read",
        why: source.unreadableCount == 1
          ? "only its device can decrypt it, or it is damaged"
          : "only their device can decrypt them, or they are damaged",
        try: "keyhaul inspect \(ShellQuoting.quote(from)) --list")
    }
    if session.isJSON { try session.writeDocument(document(simulator, source, outcome)) }
    return source.unreadableCount > 0 ? .partial : .ok
  }

  /// The result of writing the items.
  private struct Outcome {
    let insertResults: [SimulatorKeychain.InsertResult]
    /// The number of equal items that already exist.
    let equalCount: Int

    func count(_ result: SimulatorKeychain.InsertResult) -> Int { insertResults.count { $0 == result } }
    /// The number of items that are written.
    var writtenCount: Int { count(.added) + count(.replaced) }

    /// A description: "1 replaced, 21 already there".
    var text: String {
      [
        (count(.added), "new"), (count(.replaced), "replaced"), (equalCount, "already there"),
        (count(.kept), "kept with other values"),
      ].filter { $0.0 > 0 }.map { "\(HumanReadable.grouped($0.0)) \($0.1)" }.joined(separator: ", ")
    }
  }

  /// Writes the items, except those that already exist with the same values.
  private func put(
    _ source: SourceItems, into simulator: ResolvedSimulator, in session: Session
  ) throws -> Outcome {
    let (name, location) = (source.name, simulator.name)
    let existing = ExistingItems(simulator.rows)
    let newItems = source.items.filter { !existing.contains($0) }
    let equalCount = source.items.count - newItems.count
    func apply(isDryRun: Bool, _ clause: String) throws(CommandError) -> Outcome {
      let change = CommittedChange(clause, inspectCommand: "keyhaul inspect \(ShellQuoting.quote(location)) --list")
      let insertResults = try simulator.change(change, isDryRun: isDryRun, in: session) {
        (keychain) throws(KeyhaulError) in
        var results: [SimulatorKeychain.InsertResult] = []
        for item in newItems { results.append(try keychain.insert(item, replacingExisting: !keep)) }
        return results
      }
      return Outcome(insertResults: insertResults, equalCount: equalCount)
    }
    let expected =
      newItems.isEmpty
      ? Outcome(insertResults: [], equalCount: equalCount) : try apply(isDryRun: true, "")
    let count = HumanReadable.count(expected.writtenCount, "item")
    guard expected.writtenCount > 0 else {
      let all =
        "\(HumanReadable.count(equalCount, "item")) of \(name) \(equalCount == 1 ? "is" : "are") already in \(location)"
      try session.announce(
        newItems.isEmpty ? "Nothing to do: \(all)." : "Nothing to do in \(location): \(expected.text).")
      return expected
    }
    if dryRun.isOn {
      try session.announce("Would put \(count) from \(name) into \(location): \(expected.text).")
      if !session.isJSON {
        let written = zip(newItems, expected.insertResults).filter { $0.1 != .kept }
        let entries = written.enumerated().map { KeychainEntry(index: $0.offset, item: $0.element.0) }
        try session.print(FoundItemTable.table(of: entries, style: session.resultStyle))
      }
      return expected
    }
    let replaced = expected.count(.replaced)
    let loss = replaced == 0 ? "" : ", replacing \(HumanReadable.grouped(replaced))"
    try session.confirm("Put \(count) into \(location)\(loss)?", action: "putting \(count) into \(location)\(loss)")
    let outcome = try apply(isDryRun: false, "\(location) received \(count) from \(name)")
    try session.announce(
      "Put \(HumanReadable.count(outcome.writtenCount, "item")) from \(name) into \(location): \(outcome.text).")
    return outcome
  }

  private func document(
    _ simulator: ResolvedSimulator, _ source: SourceItems, _ outcome: Outcome
  ) -> JSONValue {
    simulator.document(
      "seed",
      [
        ("source", .string(source.name)), ("items", .count(source.items.count)),
        ("added", .count(outcome.count(.added))), ("replaced", .count(outcome.count(.replaced))),
        ("same", .count(outcome.equalCount)), ("kept", .count(outcome.count(.kept))),
        ("unreadable", .count(source.unreadableCount)),
      ], isDryRun: dryRun.isOn)
  }
}
