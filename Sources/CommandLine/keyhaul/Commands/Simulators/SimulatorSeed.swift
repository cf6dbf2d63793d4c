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
    let selection = try AppGroups(selectedBy: app, among: groups, of: source.name)
    // A mistyped app must not go unnoticed beside another one that matches.
    if !app.isEmpty { source.keepOnly(groups: selection.unmatchedApp == nil ? selection.groups : []) }
    guard !source.items.isEmpty else {
      let similarGroup = selection.unmatchedApp.flatMap { AppGroups.nearest(to: $0, among: groups) }
      let criterion = app.count < 2 ? "" : selection.unmatchedApp.map { " " + UntrustedText.escaped($0) } ?? ""
      session.info(
        "No item in \(UntrustedText.escaped(source.name)) matches\(criterion)"
          + (similarGroup.map { "; \(UntrustedText.escaped($0)) is similar." } ?? "."))
      if session.isJSON {
        try session.writeDocument(document(simulator, source, Outcome(insertResults: [], equalCount: 0)))
      }
      return .noMatch
    }
    let outcome = try put(source, into: simulator, in: session)
    warnAboutUnusableItems(of: source, in: session)
    if session.isJSON { try session.writeDocument(document(simulator, source, outcome)) }
    return source.unreadableCount > 0 ? .partial : .ok
  }

  /// Warns about keys that a Simulator cannot use, and about items that could not be read.
  private func warnAboutUnusableItems(of source: SourceItems, in session: Session) {
    let tokenKeys = source.items.filter(\.hasToken)
    if let first = tokenKeys.first {
      session.warn(
        "\(HumanReadable.count(tokenKeys.count, "key")) of \(source.name) cannot be used in a Simulator",
        why:
          "the private key is in a Secure Enclave or on another token; the first is \(ItemText.name(ItemDescriptor(first)))",
        try: "keyhaul explain hardware-key")
    }
    source.warnAboutUnreadable(argument: from, in: session)
  }

  /// The result of writing the items.
  private struct Outcome {
    let insertResults: [SimulatorKeychain.InsertResult]
    /// The number of items that already exist with the same values.
    let equalCount: Int

    func count(_ result: SimulatorKeychain.InsertResult) -> Int { insertResults.count { $0 == result } }
    /// The number of items that are added or replaced.
    var writtenCount: Int { count(.added) + count(.replaced) }

    /// The counts as text: "1 replaced, 21 already there".
    var text: String {
      let counts = [
        (count: count(.added), label: "new"), (count: count(.replaced), label: "replaced"),
        (count: equalCount, label: "already there"), (count: count(.kept), label: "kept with other values"),
      ]
      return counts.filter { $0.count > 0 }.map { "\(HumanReadable.grouped($0.count)) \($0.label)" }
        .joined(separator: ", ")
    }
  }

  /// Writes the items after the user has agreed, except items that already exist with the same values.
  private func put(
    _ source: SourceItems, into simulator: ResolvedSimulator, in session: Session
  ) throws -> Outcome {
    let simulatorName = simulator.name
    let existingItems = ExistingItems(simulator.rows)
    let newItems = source.items.filter { !existingItems.contains($0) }
    let equalCount = source.items.count - newItems.count
    var expectedOutcome = Outcome(insertResults: [], equalCount: equalCount)
    if !newItems.isEmpty {
      expectedOutcome = try insert(
        newItems, into: simulator, equalCount: equalCount, isDryRun: true, clause: "", in: session)
    }
    guard expectedOutcome.writtenCount > 0 else {
      try announceNothingToDo(
        expectedOutcome, hasNewItems: !newItems.isEmpty, from: source, into: simulatorName, in: session)
      return expectedOutcome
    }
    let count = HumanReadable.count(expectedOutcome.writtenCount, "item")
    if dryRun.isOn {
      try session.announce("Would put \(count) from \(source.name) into \(simulatorName): \(expectedOutcome.text).")
      try printItemsToWrite(newItems, expectedOutcome, in: session)
      return expectedOutcome
    }
    let replacedCount = expectedOutcome.count(.replaced)
    let replacementNote = replacedCount == 0 ? "" : ", replacing \(HumanReadable.grouped(replacedCount))"
    try session.confirm(
      "Put \(count) into \(simulatorName)\(replacementNote)?",
      action: "putting \(count) into \(simulatorName)\(replacementNote)")
    let outcome = try insert(
      newItems, into: simulator, equalCount: equalCount, isDryRun: false,
      clause: "\(simulatorName) received \(count) from \(source.name)", in: session)
    let writtenItems = HumanReadable.count(outcome.writtenCount, "item")
    try session.announce("Put \(writtenItems) from \(source.name) into \(simulatorName): \(outcome.text).")
    return outcome
  }

  private func announceNothingToDo(
    _ expectedOutcome: Outcome, hasNewItems: Bool, from source: SourceItems, into simulatorName: String,
    in session: Session
  ) throws(CommandError) {
    guard !hasNewItems else {
      return try session.announce("Nothing to do in \(simulatorName): \(expectedOutcome.text).")
    }
    let count = HumanReadable.count(expectedOutcome.equalCount, "item")
    let verb = expectedOutcome.equalCount == 1 ? "is" : "are"
    try session.announce("Nothing to do: \(count) of \(source.name) \(verb) already in \(simulatorName).")
  }

  /// Inserts items into the keychain.
  ///
  /// - Parameters:
  ///   - newItems: The items that do not exist with the same values.
  ///   - simulator: The Simulator to change.
  ///   - equalCount: The number of further items, which already exist with the same values.
  ///   - isDryRun: Whether this is a dry run, which does everything except the commit.
  ///   - clause: The change as a clause, for messages; unused in a dry run.
  private func insert(
    _ newItems: [KeychainItem], into simulator: ResolvedSimulator, equalCount: Int, isDryRun: Bool, clause: String,
    in session: Session
  ) throws(CommandError) -> Outcome {
    let insertResults = try simulator.change(simulator.committedChange(clause), isDryRun: isDryRun, in: session) {
      (keychain) throws(KeyhaulError) in
      var results: [SimulatorKeychain.InsertResult] = []
      for item in newItems { results.append(try keychain.insert(item, replacingExisting: !keep)) }
      return results
    }
    return Outcome(insertResults: insertResults, equalCount: equalCount)
  }

  /// Prints the table of the items that would be written.
  private func printItemsToWrite(
    _ newItems: [KeychainItem], _ expectedOutcome: Outcome, in session: Session
  ) throws(CommandError) {
    let items = zip(newItems, expectedOutcome.insertResults).filter { _, result in result != .kept }.map(\.0)
    let entries = items.enumerated().map { index, item in KeychainEntry(index: index, item: item) }
    try session.print(FoundItemTable.table(of: entries, style: session.resultStyle))
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
