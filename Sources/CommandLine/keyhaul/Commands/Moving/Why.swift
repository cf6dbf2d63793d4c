import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul why`: explains what happens to an item.
struct Why: RunnableCommand, DecryptingCommand {
  static let helpScreen = HelpScreen(
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
  static let configuration = makeConfiguration(named: "why")

  @Argument(
    help: ArgumentHelp(
      "The backup: a folder, a file, or - for a tar stream. A device, keychain dump or database is treated as if it "
        + "had been backed up."),
    completion: .devicesAndFiles)
  var source: String
  @Option(help: ItemFilterOptions.kindHelp) var kind: ItemKindArgument?
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
  @OptionGroup(title: "Opening the backup") var decryption: DecryptionOptions
  @OptionGroup var databaseKeys: DatabaseKeyOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  var filter: ItemFilterOptions { ItemFilterOptions(kind: kind, attributes: attributes) }

  func run(in session: Session) throws -> CommandExitStatus {
    let selection = try ItemSelection(filter)
    guard selection.isRestricted || filter.attributes.protection != nil || item != nil else {
      throw CommandError.usage(
        "no attribute selects an item", why: "the why command explains a single item",
        try: "--service NAME, --account NAME, or --item N")
    }
    if filter.attributes.app != nil {
      throw CommandError.usage(
        "--app does not select an item", why: "it makes a command act as an app, and the why command only explains",
        try: "--access-group GROUP")
    }
    let itemFilter = ItemExplainer.Selection(selection.query, index: item, matches: selection.matches)
    let resolver = try SourceResolver(session, databaseKeys)
    let resolvedSource = try resolver.keychain(source)
    try databaseKeys.check([resolvedSource])
    let target = try to.map { to throws(CommandError) in try resolver.device(to) }
    switch resolvedSource {
    case .backup(let backup): return try explainBackup(backup, itemFilter, selection, onto: target, in: session)
    case .dump(let dump):
      try dump.reject(accessOptions)
      return try ResolvedDevice.withSessions(target: target) { target, _ in
        try explainDump(dump, itemFilter, onto: target, in: session)
      }
    case .device(let device):
      return try ResolvedDevice.withSessions(target: target) { target, _ in
        try explainDevice(device, itemFilter, onto: target, in: session)
      }
    }
  }

  private func explainBackup(
    _ backup: ResolvedBackup, _ itemFilter: ItemExplainer.Selection, _ selection: ItemSelection,
    onto target: ResolvedDevice?, in session: Session
  ) throws -> CommandExitStatus {
    let loaded = try backup.open(storage: accessOptions.storage, for: target == nil ? .reading : .planning, in: session)
    let unlocker = BackupUnlocker(loaded, accessOptions.decryption, in: session)
    // The target's file lock is not held while the user types, so its device key is read before.
    let deviceKey = try ResolvedDevice.withSessions(target: target) { target, _ in
      try unlocker.deviceKey(excluding: target)
    }
    let key = try unlocker.key(accessOptions.password)
    return try ResolvedDevice.withSessions(target: target) { target, _ in
      let opened = try Self.decrypt(with: unlocker, key, deviceKey, onto: target)
      let sourceDevice = try unlocker.sourceDevice(excluding: target)
      defer { sourceDevice?.invalidate() }
      let restore = try target.map {
        (device: $0, plan: try opened.plan(onto: .device($0), policy: existing.policy, for: .planning))
      }
      let explanations = try Self.explainingErrors { () throws(KeyhaulError) in
        try ItemExplainer(itemFilter).explanations(
          in: opened.backup, named: loaded.name, sourceDevice: sourceDevice, onto: restore)
      }
      let candidates = unnamedItems(of: opened.backup, thatMayMatch: selection)
      return try print(
        ItemExplanationReport(explanations: explanations, source: ReportSource(loaded), target: target?.name),
        unnamedCount: candidates.count,
        isDamaged: candidates.contains { opened.backup.reason(of: $0)?.isDamage == true }, in: session)
    }
  }

  /// Decrypts the backup with the target's device key, if there is a target.
  private static func decrypt(
    with unlocker: BackupUnlocker, _ key: BackupKey, _ deviceKey: DeviceKeyCandidate?, onto target: DeviceSession?
  ) throws -> BackupUnlocker.BackupForDevice {
    guard let target else {
      return .init(backup: try unlocker.open(with: key, deviceKey: deviceKey, for: .planning), sourceDeviceName: nil)
    }
    let targetKey = DeviceKeyCandidate(.named, try target.deviceKey())
    return try unlocker.open(with: key, deviceKey: deviceKey, onto: targetKey, for: .planning)
  }

  /// Returns the undecryptable items with unknown attributes that the selection may include. With `--item`, returns no
  /// items.
  private func unnamedItems(of backup: UnlockedBackup, thatMayMatch selection: ItemSelection) -> [BackupItem] {
    guard item == nil else { return [] }
    return backup.items.filter { backupItem in
      backupItem.item == nil && backup.encryptedItemSummaries[backupItem.index] == nil
        && selection.couldMatch(ItemDescriptor(undecryptable: backupItem.kind))
    }
  }

  private func explainDevice(
    _ device: ResolvedDevice, _ itemFilter: ItemExplainer.Selection, onto target: DeviceSession?, in session: Session
  ) throws -> CommandExitStatus {
    try accessOptions.reject(for: source)
    return try device.withSession(.reading) { openDevice in
      let explanations = try Self.explainingErrors { () throws(KeyhaulError) in
        try ItemExplainer(itemFilter).explanations(on: openDevice, onto: target, policy: existing.policy)
      }
      let source = try ReportSource(openDevice, hasPassword: true)
      return try print(
        ItemExplanationReport(explanations: explanations, source: source, target: target?.name), in: session)
    }
  }

  private func explainDump(
    _ dump: ResolvedDump, _ itemFilter: ItemExplainer.Selection, onto target: DeviceSession?, in session: Session
  ) throws -> CommandExitStatus {
    let explanations = try Self.explainingErrors { () throws(KeyhaulError) in
      try ItemExplainer(itemFilter).explanations(
        of: dump.contents, named: dump.name, onto: target, policy: existing.policy)
    }
    let source = ReportSource(of: dump.contents, name: dump.name, digest: dump.digest, hasPassword: true)
    return try print(
      ItemExplanationReport(explanations: explanations, source: source, target: target?.name), in: session)
  }

  /// Finds explanations. If this fails, the error names the device that it concerns, if any.
  private static func explainingErrors(
    _ find: () throws(KeyhaulError) -> [ItemExplanation]
  ) throws(CommandError) -> [ItemExplanation] {
    do throws(KeyhaulError) {
      return try find()
    } catch {
      guard let device = error.subject else { throw CommandError(error) }
      throw error.concernsDevice ? CommandError(error, device: device) : CommandError(error, using: device)
    }
  }

  /// Prints the explanations and returns the exit status.
  ///
  /// - Parameters:
  ///   - unnamedCount: The number of encrypted items with unknown attributes. Each of these items may match.
  ///   - isDamaged: Whether one of these items is damaged, so that the result may be incomplete.
  private func print(
    _ report: ItemExplanationReport, unnamedCount: Int = 0, isDamaged: Bool = false, in session: Session
  ) throws(CommandError) -> CommandExitStatus {
    if report.explanations.isEmpty {
      if session.isJSON { try session.print(report) }
      session.info("No item in \(UntrustedText.escaped(report.source.name)) matches.")
      if unnamedCount > 0 {
        session.info("\(HumanReadable.count(unnamedCount, "encrypted item")) may match.")
        session.info("inspect --list shows their numbers; --item N explains one of them.")
      }
      if !report.source.isDevice { session.info(BackupBlindSpots.line) }
      return .noMatch
    }
    try session.print(report)
    guard isDamaged else { return .ok }
    let count = "\(HumanReadable.count(unnamedCount, "item")) of \(UntrustedText.escaped(report.source.name))"
    session.info(
      "\(count) cannot be decrypted here and may also match. At least one is damaged.")
    return .partial
  }
}
