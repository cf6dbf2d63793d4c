import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul why`: one item's whole story.
struct Why: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Show what happens to one item, and why",
    usage: "keyhaul why ARCHIVE|DEVICE [attributes] [--to DEVICE]",
    examples: [
      "keyhaul why family.backup --service chat.example --to new-phone",
      "keyhaul why old-phone --account anna",
    ],
    flags: [
      .init("--account, --service, --server", "which items; * matches any text"), "--kind", "--item",
      "--to",
      "--password-file", "--json",
    ])
  static let configuration = described(as: "why")

  @Argument(
    help: ArgumentHelp(
      "The backup: a folder, a file, or - for a tar stream. A device, keychain dump or database is treated as if it "
        + "had been backed up."),
    completion: .devicesAndFiles)
  var source: String
  @Option(help: ChosenItems.kindHelp) var kind: ItemKindArgument?
  @OptionGroup(title: "Attributes") var attributes: ItemAttributeOptions
  @Option(
    parsing: .unconditional,
    help: ArgumentHelp("The number of the item, as plan and inspect --list show it.", valueName: "n"))
  var item: Int?
  @Option(
    help: ArgumentHelp(
      "The device that the item should move to. Its own items are searched too.", valueName: "device"),
    completion: .deviceNames)
  var to: String?
  @OptionGroup var existing: ExistingItemOptions
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @OptionGroup(title: "Opening the backup") var opening: OpeningOptions
  @OptionGroup var databaseKeys: DatabaseKeyOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  var unlocking: UnlockingOptions { UnlockingOptions(password: password, opening: opening) }
  var chosen: ChosenItems { ChosenItems(kind: kind, attributes: attributes) }

  func perform(in session: Session) throws -> CommandStatus {
    let selection = try ItemSelection(chosen)
    guard selection.isRestricted || chosen.attributes.protection != nil || item != nil else {
      throw CommandFailure.usage(
        "no attribute selects an item", why: "the why command explains a single item",
        try: "--service NAME, --account NAME, or --item N")
    }
    if chosen.attributes.app != nil {
      throw CommandFailure.usage(
        "--app does not select an item", why: "it makes a command act as an app, and the why command only explains",
        try: "--access-group GROUP")
    }
    let wanted = ItemExplainer.Selection(selection.query, index: item, matches: selection.matches)
    let finder = try ArgumentFinder(session, databaseKeys)
    let found = try finder.keychain(source)
    try databaseKeys.check([found])
    let target = try to.map { to throws(CommandFailure) in try finder.device(to) }
    switch found {
    case .archive(let archive): return try tell(wanted, of: archive, selection, to: target, in: session)
    case .dump(let dump):
      try dump.refuse(unlocking)
      return try FoundDevice.hold(target, nil) { target, _ in try tell(wanted, of: dump, to: target, in: session) }
    case .device(let device):
      return try FoundDevice.hold(target, nil) { target, _ in
        try tell(wanted, of: device, to: target, in: session)
      }
    }
  }

  private func tell(
    _ wanted: ItemExplainer.Selection, of archive: FoundArchive, _ selection: ItemSelection, to target: FoundDevice?,
    in session: Session
  ) throws -> CommandStatus {
    let named = try archive.open(storage: unlocking.storage, for: target == nil ? .reading : .planning, in: session)
    let unlocker = ArchiveUnlocker(named, unlocking.opening, in: session)
    // Nobody types while a device is held.
    let hardware = try FoundDevice.hold(target, nil) { device, _ in try unlocker.hardwareKey(excluding: device) }
    let key = try unlocker.key(unlocking.password)
    return try FoundDevice.hold(target, nil) { target, _ in
      let opened =
        try target.map { target in
          try unlocker.open(
            with: key, hardware, onto: HardwareKey(.named, try target.deviceKey()), for: .planning)
        } ?? .init(archive: try unlocker.open(with: key, hardware, for: .planning), sourceDevice: nil)
      let sourceDevice = try unlocker.sourceDevice(excluding: target)
      defer { sourceDevice?.invalidate() }
      let restore = try target.map {
        (device: $0, plan: try opened.plan(onto: .device($0), policy: existing.policy, for: .planning))
      }
      let explanations = try Self.found { () throws(KeyhaulError) in
        try ItemExplainer(wanted).explanations(
          in: opened.archive, named: named.name, sourceDevice: sourceDevice, onto: restore)
      }
      let sealed = opened.archive.items.filter { item in
        self.item == nil && item.item == nil && opened.archive.encryptedItemSummaries[item.index] == nil
          && selection.couldMatch(ItemDescriptor(undecryptable: item.kind))
      }
      return try say(
        ItemExplanationReport(explanations: explanations, source: ReportSource(named), target: target?.name),
        sealed: sealed.count,
        isDamaged: sealed.contains { opened.archive.reason(of: $0)?.isDamage == true }, in: session)
    }
  }

  private func tell(
    _ wanted: ItemExplainer.Selection, of device: FoundDevice, to target: DeviceSession?, in session: Session
  ) throws -> CommandStatus {
    try unlocking.refuse(for: source)
    return try device.hold(.reading) { openDevice in
      let explanations = try Self.found { () throws(KeyhaulError) in
        try ItemExplainer(wanted).explanations(on: openDevice, onto: target, policy: existing.policy)
      }
      let source = try ReportSource(openDevice, hasPassword: true)
      return try say(
        ItemExplanationReport(explanations: explanations, source: source, target: target?.name), in: session)
    }
  }

  private func tell(
    _ wanted: ItemExplainer.Selection, of dump: FoundDump, to target: DeviceSession?, in session: Session
  ) throws -> CommandStatus {
    let explanations = try Self.found { () throws(KeyhaulError) in
      try ItemExplainer(wanted).explanations(of: dump.dump, named: dump.typed, onto: target, policy: existing.policy)
    }
    let source = ReportSource(of: dump.dump, name: dump.typed, digest: dump.digest, hasPassword: true)
    return try say(ItemExplanationReport(explanations: explanations, source: source, target: target?.name), in: session)
  }

  /// What keeps stories from being found, in the words of what the user named.
  private static func found(
    _ find: () throws(KeyhaulError) -> [ItemExplanation]
  ) throws(CommandFailure) -> [ItemExplanation] {
    do throws(KeyhaulError) {
      return try find()
    } catch {
      guard let device = error.subject else { throw CommandFailure(error) }
      throw error.isOfDevice ? CommandFailure(error, device: device) : CommandFailure(error, using: device)
    }
  }

  /// - Parameters:
  ///   - sealed: How many items have no name here, so that any of them may be meant.
  ///   - isDamaged: Whether a damaged one is among them, so that nobody can tell whether what was found is all.
  private func say(
    _ report: ItemExplanationReport, sealed: Int = 0, isDamaged: Bool = false, in session: Session
  ) throws(CommandFailure) -> CommandStatus {
    if report.explanations.isEmpty {
      if session.isJSON { try session.say(report) }
      session.note("No item in \(UntrustedText.escaped(report.source.name)) matches.")
      if sealed > 0 {
        session.note("\(HumanReadable.count(sealed, "encrypted item")) may match.")
        session.note("inspect --list shows their numbers; --item N explains one of them.")
      }
      if !report.source.isDevice { session.note(BackupBlindSpots.line) }
      return .noMatch
    }
    try session.say(report)
    guard isDamaged else { return .ok }
    let count = "\(HumanReadable.count(sealed, "item")) of \(UntrustedText.escaped(report.source.name))"
    session.note(
      "\(count) cannot be decrypted here and may also match. At least one is damaged.")
    return .partial
  }
}
