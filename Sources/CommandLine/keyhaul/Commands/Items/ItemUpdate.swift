import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul item update`: changes the attributes or the secret of the matching items.
struct ItemUpdate: RunnableCommand, DecryptingCommand {
  static let helpScreen = HelpScreen(
    sentence: "Change items of a device, a backup or a Simulator's keychain",
    usage: "keyhaul item update DEVICE|BACKUP [attributes] [changes] [--yes]",
    examples: [
      "keyhaul item update old-phone --service chat.example --account anna --new-secret-file -",
      "keyhaul item update old-phone --service '*.example' --new-protection when-unlocked-this-device",
      "keyhaul item update family.backup --service chat.example --account anna --new-account bob",
    ],
    flags: [
      .init("--account, --service, --server", "which items; * matches any text"),
      .init("--kind", "generic, internet, certificate or key"),
      .init("--new-account, --new-label, ...", "new values; each attribute has such a flag"),
      .init("--new-protection", "the new protection class"),
      "--new-secret-file", "--yes",
      .init("--password-file", "the backup's password, if the items are in a backup"),
      .init("--output, --in-place", "change a copy, or the backup itself"),
      "--dry-run", "--json",
    ])
  static let configuration = makeConfiguration(named: "update")

  @Option(help: ItemFilterOptions.kindHelp) var kind: ItemKindArgument?
  @OptionGroup(title: "Attributes") var attributes: ItemAttributeOptions
  @OptionGroup(title: "What changes") var newAttributes: ItemChangeOptions
  @OptionGroup(title: "The new secret") var newSecret: NewItemSecretFlags
  @OptionGroup(title: "If the items are in a backup") var destinationOptions: ChangeOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetKeychain
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @OptionGroup(title: "Opening the backup") var decryption: DecryptionOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  var filter: ItemFilterOptions { ItemFilterOptions(kind: kind, attributes: attributes) }

  func run(in session: Session) throws -> CommandExitStatus {
    let selection = try ItemSelection(filter).required(to: "update")
    var itemChanges = ItemChanges(attributes: try newAttributes.attributes())
    guard !itemChanges.attributes.isEmpty || newSecret.isGiven else {
      throw CommandError.usage("no change was given", try: "--new-label TEXT, or --new-secret-file PATH")
    }
    let keychain = try target.edit(
      selection, accessOptions, destinationOptions, to: "update", isDryRun: dryRun.isOn, in: session)
    let entries = try keychain.entries(for: itemChanges, in: session)
    let readableEntries = entries.filter { $0.item != nil }
    guard !readableEntries.isEmpty else { return try report(entries, changed: [], of: keychain, in: session) }
    try checkKinds(of: readableEntries)
    for item in readableEntries.compactMap(\.item) { try newAttributes.check(for: item) }
    if newSecret.isGiven {
      itemChanges.secrets[.valueData] = try readSecret(of: readableEntries, in: session)
    }
    let itemCountText = HumanReadable.count(readableEntries.count, "item")
    let location = "\(keychain.preposition) \(UntrustedText.escaped(keychain.name))"
    if try keychain.hasValues(of: itemChanges, in: readableEntries) {
      // Normally, writing removes the leftovers of killed commands.
      if !dryRun.isOn { keychain.removeLeftovers() }
      try session.announce(
        "Nothing to do: \(itemCountText) \(location) already \(readableEntries.count == 1 ? "has" : "have") these values."
      )
      return try report(entries, changed: [], areUpToDate: true, of: keychain, in: session)
    }
    let changedEntries = try update(
      readableEntries, with: itemChanges, itemCountText: itemCountText, location: location, of: keychain, in: session)
    return try report(entries, changed: changedEntries, of: keychain, in: session)
  }

  /// Asks the user, and changes the items. A dry run only shows the items.
  ///
  /// - Parameters:
  ///   - entries: The items to change.
  ///   - itemChanges: The new attribute values and secret.
  ///   - itemCountText: The number of items as text: "2 items".
  ///   - location: The keychain with its preposition: "on old-phone".
  ///   - keychain: The keychain to change.
  /// - Returns: The changed items.
  private func update(
    _ entries: [KeychainEntry], with itemChanges: ItemChanges, itemCountText: String, location: String,
    of keychain: any EditableKeychain, in session: Session
  ) throws -> [KeychainEntry] {
    let clause =
      "\(itemCountText) \(keychain.preposition) \(keychain.name) \(entries.count == 1 ? "was" : "were") changed"
    let committedChange = ItemAdd.committedChange(clause, on: keychain.name)
    // Two items may get the same primary key, so the change is tested before the user is asked.
    if dryRun.isOn || entries.count > 1 {
      _ = try keychain.apply(.update(entries, itemChanges), isDryRun: true, reportedAs: committedChange, in: session)
    }
    if dryRun.isOn {
      try session.announce("Would change \(itemCountText) \(location):")
      try session.print(FoundItemTable.table(of: entries, style: session.resultStyle))
      return entries
    }
    try session.confirm("Change \(itemCountText) \(location)?", action: "changing \(itemCountText) \(location)")
    let changedEntries = try keychain.apply(
      .update(entries, itemChanges), isDryRun: false, reportedAs: committedChange, in: session)
    for entry in changedEntries { session.debug("changed \(ItemText.line(of: entry))") }
    // `ending` names the changed copy, if there is one.
    try session.announce("Changed \(itemCountText) \(location)\(keychain.ending).")
    return changedEntries
  }

  /// Reads the new secret. Warns if the source is empty, because the items then have no secret.
  private func readSecret(of entries: [KeychainEntry], in session: Session) throws(CommandError) -> SensitiveBytes {
    let secret = try session.itemSecret(newSecret, of: Self.subject(of: entries))
    if secret.isEmpty {
      session.warn("the new secret is empty", why: "its source is empty", ignoresQuiet: true)
    }
    return secret
  }

  /// Rejects a new value for an attribute that a kind of the matching items does not have. Also rejects
  /// a new secret for certificates and keys.
  private func checkKinds(of entries: [KeychainEntry]) throws(CommandError) {
    for kind in ItemKind.allCases where entries.contains(where: { $0.kind == kind }) {
      try newAttributes.check(for: kind)
      guard newSecret.isGiven, kind == .certificate || kind == .key else { continue }
      throw .usage(
        "the bytes of \(ItemText.nounWithArticle(kind)) cannot be changed", why: "its attributes are derived from them",
        try: "delete it, and add the new one")
    }
  }

  /// Reports the result, and returns the exit status.
  ///
  /// - Parameters:
  ///   - entries: The matching items.
  ///   - changedEntries: The items that were changed, or that a dry run would change.
  ///   - areUpToDate: Whether the matching items already had the new values.
  private func report(
    _ entries: [KeychainEntry], changed changedEntries: [KeychainEntry], areUpToDate: Bool = false,
    of keychain: any EditableKeychain, in session: Session
  ) throws(CommandError) -> CommandExitStatus {
    if session.isJSON {
      let count = dryRun.isOn ? 0 : changedEntries.count
      try session.writeDocument(
        keychain.document, of: changedEntries,
        outcome: [("changed", .count(count))] + destinationOptions.members + (dryRun.isOn ? [("dry_run", true)] : []))
    }
    let unreadableCount = entries.count { $0.item == nil }
    if unreadableCount > 0 {
      session.warn(
        "\(HumanReadable.count(unreadableCount, "item")) of \(keychain.name) cannot be read and "
          + "\(unreadableCount == 1 ? "was" : "were") not changed",
        try: keychain is EditableDevice ? "restore \(unreadableCount == 1 ? "it" : "them") from a backup" : nil)
      return .partial
    }
    guard changedEntries.isEmpty, !areUpToDate else { return .ok }
    session.info("No item \(keychain.preposition) \(UntrustedText.escaped(target.keychain)) matches.")
    return .noMatch
  }

  private static func subject(of entries: [KeychainEntry]) -> String {
    guard let entry = entries.first, entries.count == 1 else { return HumanReadable.count(entries.count, "item") }
    return ItemText.name(entry.identity)
  }
}
