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
  @OptionGroup(title: "What changes") var changes: ItemChangeOptions
  @OptionGroup(title: "The new secret") var newSecret: NewItemSecretFlags
  @OptionGroup(title: "If the items are in a backup") var change: ChangeOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetKeychain
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @OptionGroup(title: "Opening the backup") var decryption: DecryptionOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  var filter: ItemFilterOptions { ItemFilterOptions(kind: kind, attributes: attributes) }

  func run(in session: Session) throws -> CommandExitStatus {
    let selection = try ItemSelection(filter).required(to: "update")
    var itemChanges = ItemChanges(attributes: try changes.attributes())
    guard !itemChanges.attributes.isEmpty || newSecret.isGiven else {
      throw CommandError.usage("no change was given", try: "--new-label TEXT, or --new-secret-file PATH")
    }
    let keychain = try target.edit(selection, accessOptions, change, to: "update", isDryRun: dryRun.isOn, in: session)
    let entries = try keychain.entries(for: itemChanges, in: session)
    let readable = entries.filter { $0.item != nil }
    guard !readable.isEmpty else { return try report(entries, changed: [], of: keychain, in: session) }
    try checkKinds(of: readable)
    for item in readable.compactMap(\.item) { try changes.check(for: item) }
    if newSecret.isGiven {
      itemChanges.secrets[.valueData] = try readSecret(of: readable, in: session)
    }
    let items = HumanReadable.count(readable.count, "item")
    let location = "\(keychain.preposition) \(UntrustedText.escaped(keychain.name))"
    if try keychain.hasValues(of: itemChanges, in: readable) {
      if !dryRun.isOn { keychain.removeLeftovers() }
      try session.announce(
        "Nothing to do: \(items) \(location) already \(readable.count == 1 ? "has" : "have") these values.")
      return try report(entries, changed: [], isMatched: true, of: keychain, in: session)
    }
    let changed = try update(readable, with: itemChanges, items: items, location: location, of: keychain, in: session)
    return try report(entries, changed: changed, of: keychain, in: session)
  }

  /// Asks, and changes the items. A dry run only shows them.
  ///
  /// - Parameters:
  ///   - entries: The items.
  ///   - itemChanges: The changes.
  ///   - items: The number of items as text.
  ///   - location: The keychain with its preposition: "on old-phone".
  ///   - keychain: The keychain.
  /// - Returns: The changed items.
  private func update(
    _ entries: [KeychainEntry], with itemChanges: ItemChanges, items: String, location: String,
    of keychain: any EditableKeychain, in session: Session
  ) throws -> [KeychainEntry] {
    let clause =
      "\(items) \(keychain.preposition) \(keychain.name) \(entries.count == 1 ? "was" : "were") changed"
    let committedChange = ItemAdd.committedChange(clause, on: keychain.name)
    // Two items may get the same primary key, so the change is tested before the user is asked.
    if dryRun.isOn || entries.count > 1 {
      _ = try keychain.apply(.update(entries, itemChanges), isDryRun: true, committedChange, in: session)
    }
    if dryRun.isOn {
      try session.announce("Would change \(items) \(location):")
      try session.print(FoundItemTable.table(of: entries, style: session.resultStyle))
      return entries
    }
    try session.confirm("Change \(items) \(location)?", action: "changing \(items) \(location)")
    let changed = try keychain.apply(.update(entries, itemChanges), isDryRun: false, committedChange, in: session)
    for entry in changed { session.debug("changed \(ItemText.line(of: entry))") }
    try session.announce("Changed \(items) \(location)\(keychain.ending).")
    return changed
  }

  /// Reads the new secret. Warns if the source is empty, because the items then have no secret.
  private func readSecret(of rows: [KeychainEntry], in session: Session) throws(CommandError) -> SensitiveBytes {
    let secret = try session.itemSecret(newSecret, of: Self.subject(of: rows))
    if secret.isEmpty {
      session.warn("the new secret is empty", why: "its source is empty", ignoresQuiet: true)
    }
    return secret
  }

  /// Rejects attributes that items of one of these kinds do not have, and a new secret for certificates and keys.
  private func checkKinds(of rows: [KeychainEntry]) throws(CommandError) {
    for kind in ItemKind.allCases where rows.contains(where: { $0.kind == kind }) {
      try changes.check(for: kind)
      guard newSecret.isGiven, kind == .certificate || kind == .key else { continue }
      throw .usage(
        "the bytes of \(ItemText.nounWithArticle(kind)) cannot be changed", why: "its attributes are derived from them",
        try: "delete it, and add the new one")
    }
  }

  /// Reports the result, and returns the exit status.
  ///
  /// - Parameter isMatched: Whether items matched, although none had to be changed.
  private func report(
    _ entries: [KeychainEntry], changed: [KeychainEntry], isMatched: Bool = false, of keychain: any EditableKeychain,
    in session: Session
  ) throws(CommandError) -> CommandExitStatus {
    if session.isJSON {
      let count = dryRun.isOn ? 0 : changed.count
      try session.writeDocument(
        keychain.document, of: changed,
        outcome: [("changed", .count(count))] + change.members + (dryRun.isOn ? [("dry_run", true)] : []))
    }
    let unreadable = entries.count { $0.item == nil }
    if unreadable > 0 {
      session.warn(
        "\(HumanReadable.count(unreadable, "item")) of \(keychain.name) cannot be read and "
          + "\(unreadable == 1 ? "was" : "were") not changed",
        try: keychain is EditableDevice ? "restore \(unreadable == 1 ? "it" : "them") from a backup" : nil)
      return .partial
    }
    guard changed.isEmpty, !isMatched else { return .ok }
    session.info("No item \(keychain.preposition) \(UntrustedText.escaped(target.keychain)) matches.")
    return .noMatch
  }

  private static func subject(of rows: [KeychainEntry]) -> String {
    guard let row = rows.first, rows.count == 1 else { return HumanReadable.count(rows.count, "item") }
    return ItemText.name(row.identity)
  }
}

/// The changes of `item update`.
struct ItemChangeOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The new account.", valueName: "text"))
  var newAccount: String?

  @Option(help: ArgumentHelp("The new service of a generic password.", valueName: "text"))
  var newService: String?

  @Option(help: ArgumentHelp("The new server of an internet password.", valueName: "text"))
  var newServer: String?

  @Option(help: ArgumentHelp("The internet password's protocol: https, imap or a four-letter code.", valueName: "text"))
  var newProtocol: String?

  @Option(help: ArgumentHelp("The new port of an internet password.", valueName: "number"))
  var newPort: UInt16?

  @Option(help: ArgumentHelp("The new path of an internet password.", valueName: "text"))
  var newPath: String?

  @Option(help: ArgumentHelp("The new label.", valueName: "text"))
  var newLabel: String?

  @Option(help: ArgumentHelp("The new application tag of a key.", valueName: "text"))
  var newApplicationTag: String?

  @Option(help: ArgumentHelp("The access group to move the items to.", valueName: "group"))
  var newAccessGroup: String?

  @Option(
    help: ArgumentHelp(
      "The new protection class: when the item can be read, and whether it can move to another "
        + "device.", valueName: "class"))
  var newProtection: ProtectionArgument?

  @Flag(inversion: .prefixedNo, help: "Whether the item syncs with iCloud Keychain from now on.")
  var newSync: Bool?

  @Flag(inversion: .prefixedNo, help: "Whether reading the item requires user presence from now on.")
  var newUserPresence: Bool?

  @Flag(inversion: .prefixedNo, help: "Whether reading the item requires biometry from now on.")
  var newBiometry: Bool?

  /// Returns the new values without the secret; `null` removes an attribute.
  func attributes() throws(CommandError) -> AttributeMap<PropertyValue> {
    var values: AttributeMap<PropertyValue> = [:]
    for newValue in try newValues() { values[newValue.code] = newValue.value }
    if let constraints {
      try AccessConstraint.check(constraints, sync: newSync == true, prefix: "new-")
      values[.accessControl] = constraints.isEmpty ? .null : .dictionary(AccessConstraint.operations(constraints))
    }
    return values
  }

  /// The authentication that is required to read the item from now on; `nil` if it stays unchanged.
  private var constraints: [AccessConstraint]? {
    guard newUserPresence != nil || newBiometry != nil else { return nil }
    return (newUserPresence == true ? [.userPresence] : []) + (newBiometry == true ? [.biometryAny] : [])
  }

  /// Rejects making an item sync that requires authentication.
  func check(for item: KeychainItem) throws(CommandError) {
    guard newSync == true, item[.accessControl] != nil, constraints == nil else { return }
    throw .usage(
      "--new-sync cannot apply to an item that requires "
        + "authentication", why: "an item with an access control does not sync",
      try: "--no-new-user-presence, or --no-new-biometry, which remove the access control")
  }

  /// Rejects an attribute that items of this kind do not have.
  func check(for kind: ItemKind) throws(CommandError) {
    for (flag, code, _) in try newValues() where AttributeTable.definition(of: code, in: kind) == nil {
      throw .usage(
        "--\(flag) is not an attribute of \(ItemText.nounWithArticle(kind))",
        why: "one of the matching items is of this kind",
        try: "--kind, to change items of one kind")
    }
  }

  /// Returns the attributes for which a flag was given, with the flag's name.
  private func newValues() throws(CommandError) -> [(flag: String, code: AttributeCode, value: PropertyValue)] {
    if newAccessGroup?.isEmpty == true { throw .usage("--new-access-group is empty", try: "--new-access-group GROUP") }
    let networkProtocol = try newProtocol.map { (text) throws(CommandError) in
      try ProtocolCode.code(of: text, flag: "--new-protocol")
    }
    let all: [(String, AttributeCode, PropertyValue?)] = [
      ("new-account", .account, newAccount.map { .string($0) }),
      ("new-service", .service, newService.map { .string($0) }),
      ("new-server", .server, newServer.map { .string($0) }),
      ("new-protocol", .protocolType, networkProtocol.map { .string($0) }),
      ("new-port", .port, newPort.map { .integer(Int64($0)) }), ("new-path", .path, newPath.map { .string($0) }),
      ("new-label", .label, newLabel.map { .string($0) }),
      ("new-application-tag", .applicationTag, newApplicationTag.map { .data(Array($0.utf8)) }),
      ("new-access-group", .accessGroup, newAccessGroup.map { .string($0) }),
      ("new-protection", .protection, newProtection.map { .string($0.protection.rawValue) }),
      ("new-sync", .synchronizable, newSync.map { .integer($0 ? 1 : 0) }),
    ]
    return all.compactMap { flag, code, value in value.map { (flag, code, $0) } }
  }
}
