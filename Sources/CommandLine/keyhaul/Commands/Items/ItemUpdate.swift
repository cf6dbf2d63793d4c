import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul item update`: gives the items of a device that have these attributes other ones, or another secret.
struct ItemUpdate: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Change items of a device, a backup or a Simulator's keychain",
    usage: "keyhaul item update DEVICE|BACKUP [attributes] [changes] [--yes]",
    examples: [
      "keyhaul item update old-phone --service chat.example --account anna --new-secret-file -",
      "keyhaul item update old-phone --service '*.example' --new-protection when-unlocked-this-device",
      "keyhaul item update family.backup --service chat.example --account anna --new-account bob",
    ],
    flags: [
      .init("--account, --service, --server", "which items; * matches any text"), "--kind",
      .init("--new-account, --new-label, ...", "new values; each attribute has such a flag"), "--new-protection",
      "--new-secret-file", "--yes",
      .init("--password-file", "the backup's password, if the items are in a backup"), "--dry-run", "--json",
    ])
  static let configuration = described(as: "update")

  @Option(help: ChosenItems.kindHelp) var kind: ItemKindArgument?
  @OptionGroup(title: "Attributes") var attributes: ItemAttributeOptions
  @OptionGroup(title: "What changes") var changes: ItemChangeOptions
  @OptionGroup(title: "The new secret") var newSecret: NewItemSecretFlags
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetKeychain
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @OptionGroup(title: "Opening the backup") var opening: OpeningOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  var chosen: ChosenItems { ChosenItems(kind: kind, attributes: attributes) }

  func perform(in session: Session) throws -> CommandStatus {
    let selection = try ItemSelection(chosen).required(to: "update")
    var wanted = ItemChanges(attributes: try changes.attributes())
    guard !wanted.attributes.isEmpty || newSecret.isGiven else {
      throw CommandFailure.usage("no change was given", try: "--new-label TEXT, or --new-secret-file PATH")
    }
    let unlocking = UnlockingOptions(password: password, opening: opening)
    switch try target.find(unlocking, in: session) {
    case .device(let device): return try update(selection, &wanted, on: device, in: session)
    case .archive(let archive):
      let items = try BackupItems(archive, unlocking, to: "update", isRehearsed: dryRun.isOn, in: session)
      return try update(selection, &wanted, in: items, in: session)
    case .dump(let dump): return try update(selection, &wanted, in: try SimulatorItems(dump), in: session)
    }
  }

  private func update(
    _ selection: ItemSelection, _ wanted: inout ItemChanges, in keychain: some EditableItems, in session: Session
  ) throws -> CommandStatus {
    try selection.requireNoApp(of: keychain.name)
    let rows = keychain.items.meant(by: selection)
    keychain.items.noteHidden(besides: rows, for: selection, in: session)
    let readable = rows.filter { $0.item != nil }
    guard !readable.isEmpty else { return try end(rows, changed: [], in: keychain, session) }
    try checkKinds(of: readable)
    for item in readable.compactMap(\.item) { try changes.check(for: item) }
    if newSecret.isGiven {
      wanted.secrets[.valueData] = try readSecret(of: readable, in: session)
    }
    let (items, name) = (Amounts.count(readable.count, "item"), HostileText.shown(keychain.name))
    if readable.compactMap(\.item).allSatisfy({ wanted.changeNothing(of: $0) }) {
      if !dryRun.isOn { keychain.sweepLeftovers() }
      try announceNothing(items, "in \(name)", in: session)
      return try end(rows, changed: [], isMatched: true, in: keychain, session)
    }
    let what = "\(items) in \(keychain.name) \(readable.count == 1 ? "was" : "were") changed"
    let done = ItemAdd.done(what, on: keychain.name)
    if rehearses(readable.count) {
      _ = try keychain.perform(.update(readable, wanted), isRehearsed: true, done, in: session)
    }
    if dryRun.isOn {
      try session.announce("Would change \(items) in \(name):")
      try session.say(FoundItemTable.table(of: readable, style: session.resultStyle))
      return try end(rows, changed: readable, in: keychain, session)
    }
    if let note = keychain.note { session.note(note) }
    try session.confirm("Change \(items) in \(name)?", refusal: "changing \(items) in \(name)")
    let changed = try keychain.perform(.update(readable, wanted), isRehearsed: false, done, in: session).map(\.row)
    for row in changed { session.detail("changed \(ItemText.line(of: row))") }
    try session.announce("Changed \(items) in \(name).")
    return try end(rows, changed: changed, in: keychain, session)
  }

  private func end(
    _ rows: [ItemRow], changed: [ItemRow], isMatched: Bool = false, in keychain: some EditableItems, _ session: Session
  ) throws -> CommandStatus {
    try answer(keychain.items.document(revealsSecrets: false), changed, in: session)
    return end(rows, changed, isMatched: isMatched, of: keychain.name, "in", in: session)
  }

  private func update(
    _ selection: ItemSelection, _ wanted: inout ItemChanges, on device: FoundDevice, in session: Session
  ) throws -> CommandStatus {
    let agreed = try device.hold(.reading) { openDevice in
      try ItemFailure.checkGroups(
        [changes.newAccessGroup].compactMap(\.self), of: chosen.attributes.app, on: openDevice)
      let rows = try selection.rows(on: openDevice, to: "change")
      if rows.contains(where: \.isLocked) { throw ItemFailure.locked("change", on: openDevice) }
      return try AgreedItems(rows, on: openDevice)
    }
    let readable = agreed.rows.filter { $0.item != nil }
    guard !readable.isEmpty else { return try end(agreed, changed: [], in: session) }
    try checkKinds(of: readable)
    for item in readable.compactMap({ $0.item }) { try changes.check(for: item) }
    if newSecret.isGiven {
      wanted.secrets[.valueData] = try readSecret(of: readable, in: session)
    }
    let items = Amounts.count(readable.count, "item")
    if try isAlready(wanted, selection, readable, on: device) {
      try announceNothing(items, "on \(agreed.device)", in: session)
      return try end(agreed, changed: [], isMatched: true, in: session)
    }
    if rehearses(readable.count) {
      try device.hold(.writing) { openDevice in
        try openDevice.requireUnchanged(since: agreed.revision)
        try rehearse(wanted, selection, on: openDevice)
      }
    }
    guard !dryRun.isOn else {
      try session.announce("Would change \(items) on \(agreed.device):")
      try session.say(FoundItemTable.table(of: readable, style: session.resultStyle))
      return try end(agreed, changed: readable, in: session)
    }
    try session.confirm("Change \(items) on \(agreed.device)?", refusal: "changing \(items) on \(agreed.device)")
    let changed = try device.hold(.writing) { openDevice in
      try openDevice.requireUnchanged(since: agreed.revision)
      let what = "\(items) on \(agreed.device) \(readable.count == 1 ? "was" : "were") changed"
      try session.changing(ItemAdd.done(what, on: agreed.device)) { () throws(CommandFailure) in
        try update(wanted, selection, on: openDevice)
      }
      return try found(readable, on: openDevice)
    }
    for row in changed { session.detail("changed \(ItemText.line(of: row))") }
    try session.announce("Changed \(items) on \(agreed.device).")
    return try end(agreed, changed: changed, in: session)
  }

  /// Whether the change is tried before anybody is asked about it: two that are given one name are in each other's way.
  private func rehearses(_ count: Int) -> Bool { dryRun.isOn || count > 1 }

  /// Gets the new secret. One that its source does not hold leaves the items without any.
  private func readSecret(of rows: [ItemRow], in session: Session) throws(CommandFailure) -> SensitiveBytes {
    let secret = try session.itemSecret(newSecret, of: Self.subject(of: rows))
    if secret.isEmpty {
      session.warn("the new secret is empty", why: "its source is empty", evenQuiet: true)
    }
    return secret
  }

  /// What an item of one of these kinds cannot have, or cannot have changed alone.
  private func checkKinds(of rows: [ItemRow]) throws(CommandFailure) {
    for kind in ItemKind.allCases where rows.contains(where: { $0.kind == kind }) {
      try changes.check(for: kind)
      guard newSecret.isGiven, kind == .certificate || kind == .key else { continue }
      throw .usage(
        "the bytes of \(ItemText.nounWithArticle(kind)) cannot be changed", why: "its attributes are derived from them",
        try: "delete it, and add the new one")
    }
  }

  private func update(
    _ changes: ItemChanges, _ selection: ItemSelection, on openDevice: DeviceSession
  ) throws(CommandFailure) {
    do throws(VirtualDeviceError) {
      try openDevice.update(Self.query(of: selection), with: changes, as: selection.app)
    } catch {
      throw ItemFailure.changing(error, "change", on: openDevice)
    }
  }

  /// The items as they are now.
  private func found(_ rows: [ItemRow], on openDevice: DeviceSession) throws(CommandFailure) -> [ItemRow] {
    do throws(VirtualDeviceError) {
      var changed: [ItemRow] = []
      for row in rows { changed += ItemRow.all(of: try openDevice.find(ItemQuery(row: row.reference))) }
      return changed
    } catch {
      throw ItemFailure.finding(error, on: openDevice)
    }
  }

  /// Ends as the change would end, and changes nothing.
  private func rehearse(
    _ changes: ItemChanges, _ selection: ItemSelection, on openDevice: DeviceSession
  ) throws(CommandFailure) {
    do throws(VirtualDeviceError) {
      try openDevice.rehearseUpdating(Self.query(of: selection), with: changes, as: selection.app)
    } catch {
      throw ItemFailure.changing(error, "change", on: openDevice)
    }
  }

  /// A row that nothing opens is left as it is: an update without a condition would delete it, as a device does.
  private static func query(of selection: ItemSelection) -> ItemQuery {
    var query = selection.query
    let condition = query.condition
    query.condition = { condition?($0) ?? true }
    return query
  }

  private func end(
    _ agreed: AgreedItems, changed: [ItemRow], isMatched: Bool = false, in session: Session
  ) throws -> CommandStatus {
    try answer(agreed.document, changed, in: session)
    return end(agreed.rows, changed, isMatched: isMatched, of: agreed.device, "on", in: session)
  }

  private func answer(_ document: ItemDocument, _ changed: [ItemRow], in session: Session) throws(CommandFailure) {
    guard session.isJSON else { return }
    let count = dryRun.isOn ? 0 : changed.count
    try session.answer(
      document, of: changed, [("changed", .count(count))] + (dryRun.isOn ? [("dry_run", true)] : []))
  }

  private func announceNothing(_ items: String, _ place: String, in session: Session) throws(CommandFailure) {
    try session.announce("Nothing to do: \(items) \(place) already \(items == "1 item" ? "has" : "have") these values.")
  }

  /// Whether each item has all that it would be given; with their secrets, where one is given.
  private func isAlready(
    _ wanted: ItemChanges, _ selection: ItemSelection, _ rows: [ItemRow], on device: FoundDevice
  ) throws -> Bool {
    guard rows.compactMap(\.item).allSatisfy({ wanted.attributesChangeNothing(of: $0) }) else { return false }
    guard !wanted.secrets.isEmpty else { return true }
    return try device.hold(.reading) { openDevice in
      let found = try selection.found(on: openDevice, wantsSecret: true).compactMap(\.item)
      return found.count == rows.count && found.allSatisfy { wanted.changeNothing(of: $0) }
    }
  }

  /// - Parameters:
  ///   - isMatched: Whether there was something, though nothing had to be changed.
  ///   - place: "on" a device, "in" a backup.
  private func end(
    _ rows: [ItemRow], _ changed: [ItemRow], isMatched: Bool, of name: String, _ place: String, in session: Session
  ) -> CommandStatus {
    let unreadable = rows.count { $0.item == nil }
    if unreadable > 0 {
      session.warn(
        "\(Amounts.count(unreadable, "item")) of \(name) cannot be read and \(unreadable == 1 ? "was" : "were") not changed",
        try: place == "on" ? "restore \(unreadable == 1 ? "it" : "them") from a backup" : nil)
      return .partial
    }
    guard changed.isEmpty, !isMatched else { return .ok }
    session.note("No item \(place) \(HostileText.shown(target.keychain)) matches.")
    return .noMatch
  }

  private static func subject(of rows: [ItemRow]) -> String {
    guard let row = rows.first, rows.count == 1 else { return Amounts.count(rows.count, "item") }
    return ItemText.name(row.identity)
  }
}

/// What `item update` changes in the items that it meets.
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

  /// The new values, without the secret; `null` takes one away.
  func attributes() throws(CommandFailure) -> AttributeMap<PropertyValue> {
    var values: AttributeMap<PropertyValue> = [:]
    for option in try options() { values[option.code] = option.value }
    if let constraints {
      try AccessConstraint.check(constraints, sync: newSync == true, prefix: "new-")
      values[.accessControl] = constraints.isEmpty ? .null : .dictionary(AccessConstraint.operations(constraints))
    }
    return values
  }

  /// What a person must do from now on before the item opens; `nil` if that stays as it is.
  private var constraints: [AccessConstraint]? {
    guard newUserPresence != nil || newBiometry != nil else { return nil }
    return (newUserPresence == true ? [.userPresence] : []) + (newBiometry == true ? [.biometryAny] : [])
  }

  /// Refuses to make an item sync that asks for its owner and goes on asking.
  func check(for item: KeychainItem) throws(CommandFailure) {
    guard newSync == true, item[.accessControl] != nil, constraints == nil else { return }
    throw .usage(
      "--new-sync cannot apply to an item that requires "
        + "authentication", why: "an item with an access control does not sync",
      try: "--no-new-user-presence, or --no-new-biometry, which remove the access control")
  }

  /// Refuses an attribute that items of this kind do not have.
  func check(for kind: ItemKind) throws(CommandFailure) {
    for (flag, code, _) in try options() where AttributeTable.definition(of: code, in: kind) == nil {
      throw .usage(
        "--\(flag) is not an attribute of \(ItemText.nounWithArticle(kind))",
        why: "one of the matching items is of this kind",
        try: "--kind, to change items of one kind")
    }
  }

  private func options() throws(CommandFailure) -> [(flag: String, code: AttributeCode, value: PropertyValue)] {
    if newAccessGroup?.isEmpty == true { throw .usage("--new-access-group is empty", try: "--new-access-group GROUP") }
    let networkProtocol = try newProtocol.map { (text) throws(CommandFailure) in
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
