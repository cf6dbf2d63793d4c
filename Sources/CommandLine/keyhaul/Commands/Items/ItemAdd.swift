import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul item add`: a new item on a device.
struct ItemAdd: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Add an item to a device, a backup or a Simulator's keychain",
    usage: "keyhaul item add DEVICE|BACKUP [attributes] [--secret-file PATH]",
    examples: [
      "keyhaul item add old-phone --service chat.example --account anna",
      "keyhaul item add old-phone --kind internet --server imap.example.org --account anna --secret-file -",
      "keyhaul item add old-phone --kind certificate --secret-file mail.pem",
      "keyhaul item add old-phone --kind key --label mail --secret-file mail.key",
      "keyhaul item add family.backup --service chat.example --account anna --access-group TEAM.org.example.chat",
    ],
    flags: [
      "--kind", .init("--account, --service, --server", "what the item is for"),
      .init("--protection", "when-unlocked, after-first-unlock, always (also with -this-device); passcode-only"),
      .init("--secret-file", "read the secret, or a certificate or key in PEM or DER"),
      .init("--password-file", "the backup's password, if the items are in a backup"), "--dry-run",
    ])
  static let configuration = described(as: "add")

  @Option(help: ArgumentHelp("generic, internet, certificate or key (default: generic).", valueName: "kind"))
  var kind: ItemKindArgument?
  @OptionGroup(title: "Attributes") var attributes: ItemAttributeOptions
  @OptionGroup(title: "The secret") var secret: ItemSecretFlags
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetKeychain
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @OptionGroup(title: "Opening the backup") var opening: OpeningOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let described = try described()
    let unlocking = UnlockingOptions(password: password, opening: opening)
    switch try target.find(unlocking, in: session) {
    case .device(let device): return try add(described, to: device, in: session)
    case .archive(let archive):
      let items = try BackupItems(archive, unlocking, to: "add", isRehearsed: dryRun.isOn, in: session)
      return try add(described, to: items, in: session)
    case .dump(let dump): return try add(described, to: try SimulatorItems(dump), in: session)
    }
  }

  /// Adds to what is not a device: there nobody says which access group an app would use.
  private func add(
    _ described: KeychainItem, to keychain: some EditableItems, in session: Session
  ) throws -> CommandStatus {
    try ItemSelection(ChosenItems(kind: kind, attributes: attributes)).requireNoApp(of: keychain.name)
    guard attributes.accessGroup != nil else {
      throw CommandFailure.usage(
        "no access group was given for the item", why: "only a device can choose one; \(keychain.name) cannot",
        try: "--access-group GROUP")
    }
    let item = try complete(described, in: session)
    let shown = HostileText.shown(ItemText.name(of: item), columns: 100, ellipsis: session.resultStyle.ellipsis)
    let sentence = "\(item.kind.noun) \"\(shown)\" to \(HostileText.shown(keychain.name))"
    if !dryRun.isOn, let note = keychain.note { session.note(note) }
    let added = try keychain.perform(
      .add(item), isRehearsed: dryRun.isOn, Self.done("an item was added to \(keychain.name)", on: keychain.name),
      in: session)
    let reach = added.first?.row.item.map(keychain.reach(of:)) ?? keychain.reach(of: item)
    try session.announce((dryRun.isOn ? "Would add " : "Added ") + sentence + " (\(reach)).")
    let hidden = keychain.items.hidden.count
    if hidden > 0 {
      session.note(
        "\(Amounts.count(hidden, "item")) in this keychain cannot be decrypted here, so Keyhaul could not check "
          + "whether the new item already existed."
      )
    }
    if session.isJSON {
      let indexes = Dictionary(
        added.compactMap { added in added.index.map { (added.row.reference, $0) } }, uniquingKeysWith: { $1 })
      let document = ItemDocument(
        source: (keychain.items.sourceKind, keychain.name), indexes: indexes, revealsSecrets: false)
      try session.answer(document, of: added.map(\.row), dryRun.isOn ? [("dry_run", true)] : [])
    }
    return .ok
  }

  private func add(_ described: KeychainItem, to device: FoundDevice, in session: Session) throws -> CommandStatus {
    let deviceName = device.name
    let item = try complete(described, in: session)
    let name = ItemText.name(of: item)
    let (stored, document) = try device.hold(.writing) { openDevice in
      let stored =
        dryRun.isOn
        ? try add(item, on: openDevice)
        : try session.changing(Self.done("an item was added to \(deviceName)", on: deviceName)) {
          () throws(CommandFailure) in try add(item, on: openDevice)
        }
      let indexes = session.isJSON ? try openDevice.keychain.places(of: [stored.summary.reference]) : [:]
      return (stored, ItemDocument(source: ("device", deviceName), indexes: indexes, revealsSecrets: false))
    }
    let shown = HostileText.shown(name, columns: 100, ellipsis: session.resultStyle.ellipsis)
    let sentence = "\(item.kind.noun) \"\(shown)\" to \(deviceName) (\(Self.reach(of: stored.item)))."
    try session.announce((dryRun.isOn ? "Would add " : "Added ") + sentence)
    if session.isJSON {
      try session.answer(document, of: [ItemRow(stored)], dryRun.isOn ? [("dry_run", true)] : [])
    }
    return .ok
  }

  /// A change of a device's items.
  static func done(_ what: String, on device: String) -> DoneChange {
    DoneChange(what, look: "keyhaul item find \(ShellWord.quoted(device))")
  }

  /// The item without its secret.
  private func described() throws(CommandFailure) -> KeychainItem {
    let kind = kind?.kind ?? .genericPassword
    let isPassword = kind == .genericPassword || kind == .internetPassword
    if isPassword { try attributes.checkName() }
    var item = KeychainItem(kind: kind, attributes: try attributes.attributes(of: kind))
    if let group = attributes.accessGroup { item[.accessGroup] = .string(group) }
    if attributes.sync { item[.synchronizable] = .integer(1) }
    let constraints = attributes.constraints
    try AccessConstraint.check(constraints, sync: attributes.sync)
    if !constraints.isEmpty { item[.accessControl] = .dictionary(AccessConstraint.operations(constraints)) }
    return item
  }

  /// The item with its secret, and with what a certificate or key says of itself; the user's own attributes count more.
  private func complete(_ described: KeychainItem, in session: Session) throws(CommandFailure) -> KeychainItem {
    var item: KeychainItem
    switch described.kind {
    case .genericPassword, .internetPassword:
      item = described
      item.secret = try session.itemSecret(secret, of: ItemText.name(ItemIdentity(described)))
    case .certificate: item = KeychainItem(try ItemMaterial.certificate(secret, in: session))
    case .key: item = KeychainItem(try ItemMaterial.key(secret, in: session))
    }
    item.attributes.merge(described.attributes) { _, given in given }
    return item
  }

  private func add(_ item: KeychainItem, on openDevice: DeviceSession) throws(CommandFailure) -> StoredItem {
    try ItemFailure.checkGroups([item.accessGroup].compactMap(\.self), of: attributes.app, on: openDevice)
    do throws(VirtualDeviceError) {
      return dryRun.isOn
        ? try openDevice.rehearseAdding(item, as: attributes.app) : try openDevice.add(item, as: attributes.app)
    } catch {
      throw ItemFailure.adding(item, error, to: openDevice.name)
    }
  }

  /// How far the item can travel, in words.
  private static func reach(of item: KeychainItem) -> String {
    guard let protection = item.protection, protection != .whenPasscodeSetThisDeviceOnly
    else { return "never leaves this device" }
    guard item[.accessControl] == nil else { return "in no backup" }
    return protection.isThisDeviceOnly ? "stays on this device" : "moves with an encrypted backup"
  }
}

/// Certificates and keys as a user hands them over.
enum ItemMaterial {
  /// - Throws: `.refused` or `.damaged` for what is not a certificate, and for a chain: an item holds one.
  static func certificate(_ flags: ItemSecretFlags, in session: Session) throws(CommandFailure) -> CertificateFacts {
    let file = try file(flags, of: "the certificate", isPublic: true, in: session)
    do throws(MaterialError) {
      let all = try CertificateFacts.all(in: file)
      guard all.count == 1 else {
        throw MaterialError(.unexpectedKind, "it contains \(all.count) certificates, but an item stores only one")
      }
      return all[0]
    } catch {
      throw CommandFailure(error, doing: "cannot read the certificate")
    }
  }

  /// - Throws: `.refused` or `.damaged` for what is no key in clear.
  static func key(_ flags: ItemSecretFlags, in session: Session) throws(CommandFailure) -> KeyMaterial {
    let file = try file(flags, of: "the key", isPublic: false, in: session)
    do throws(MaterialError) {
      return try KeyMaterial(parsing: file)
    } catch {
      throw CommandFailure(error, doing: "cannot read the key")
    }
  }

  /// Nobody types a certificate or a key at a prompt.
  private static func file(
    _ flags: ItemSecretFlags, of subject: String, isPublic: Bool, in session: Session
  ) throws(CommandFailure) -> SensitiveBytes {
    guard flags.isGiven else {
      throw .usage("\(subject) is not given", why: "it is PEM or DER, which cannot be typed", try: "--secret-file PATH")
    }
    return try session.itemSecret(flags, of: subject, isPublic: isPublic)
  }
}
