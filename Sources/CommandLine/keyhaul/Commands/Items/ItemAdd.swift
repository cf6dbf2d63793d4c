import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul item add`: a new item on a device.
struct ItemAdd: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Add an item to a device, a backup or a Simulator's keychain",
    usage: "keyhaul item add DEVICE|BACKUP [attributes] [--secret-file PATH] [-o COPY]",
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
      .init("--password-file", "the backup's password, if the items are in a backup"),
      .init("--output, --in-place", "change a copy, or the backup itself"),
      "--dry-run",
    ])
  static let configuration = described(as: "add")

  @Option(help: ArgumentHelp("generic, internet, certificate or key (default: generic).", valueName: "kind"))
  var kind: ItemKindArgument?
  @OptionGroup(title: "Attributes") var attributes: ItemAttributeOptions
  @OptionGroup(title: "The secret") var secret: ItemSecretFlags
  @OptionGroup(title: "If the items are in a backup") var change: ChangeOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetKeychain
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @OptionGroup(title: "Opening the backup") var opening: OpeningOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let described = try described()
    let selection = try ItemSelection(ChosenItems(kind: kind, attributes: attributes))
    let unlocking = UnlockingOptions(password: password, opening: opening)
    let keychain = try target.edit(selection, unlocking, change, to: "add", isRehearsed: dryRun.isOn, in: session)
    try keychain.check(attributes)
    let item = try complete(described, in: session)
    let shown = UntrustedText.escaped(ItemText.name(of: item), columns: 100, ellipsis: session.resultStyle.ellipsis)
    let sentence = "\(item.kind.noun) \"\(shown)\" to \(UntrustedText.escaped(keychain.name))"
    if !dryRun.isOn, let note = keychain.note { session.note(note) }
    let added = try keychain.perform(
      .add(item), isRehearsed: dryRun.isOn, Self.done("an item was added to \(keychain.name)", on: keychain.name),
      in: session)
    let reach = keychain.reach(of: added.first?.item ?? item)
    try session.announce((dryRun.isOn ? "Would add " : "Added ") + sentence + " (\(reach))\(keychain.ending).")
    if keychain.hiddenCount > 0 {
      session.note(
        "\(HumanReadable.count(keychain.hiddenCount, "item")) in this keychain cannot be decrypted here, so Keyhaul could not "
          + "check whether the new item already existed."
      )
    }
    if session.isJSON {
      try session.answer(keychain.document, of: added, change.members + (dryRun.isOn ? [("dry_run", true)] : []))
    }
    return .ok
  }

  /// A change of a device's items.
  static func done(_ what: String, on device: String) -> DoneChange {
    DoneChange(what, look: "keyhaul item find \(ShellQuoting.quote(device))")
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
      item.secret = try session.itemSecret(secret, of: ItemText.name(ItemDescriptor(described)))
    case .certificate: item = KeychainItem(try ItemMaterial.certificate(secret, in: session))
    case .key: item = KeychainItem(try ItemMaterial.key(secret, in: session))
    }
    item.attributes.merge(described.attributes) { _, given in given }
    return item
  }
}

/// Certificates and keys as a user hands them over.
enum ItemMaterial {
  /// - Throws: `.refused` or `.damaged` for what is not a certificate, and for a chain: an item holds one.
  static func certificate(_ flags: ItemSecretFlags, in session: Session) throws(CommandFailure) -> CertificateAttributes
  {
    let file = try file(flags, of: "the certificate", isPublic: true, in: session)
    do throws(CertificateError) {
      let all = try CertificateAttributes.all(in: file)
      guard all.count == 1 else {
        throw CertificateError(.unexpectedKind, "it contains \(all.count) certificates, but an item stores only one")
      }
      return all[0]
    } catch {
      throw CommandFailure(error, doing: "cannot read the certificate")
    }
  }

  /// - Throws: `.refused` or `.damaged` for what is no key in clear.
  static func key(_ flags: ItemSecretFlags, in session: Session) throws(CommandFailure) -> KeyMaterial {
    let file = try file(flags, of: "the key", isPublic: false, in: session)
    do throws(CertificateError) {
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
