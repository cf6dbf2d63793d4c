import ArgumentParser
import KeyhaulKit
import Reports

/// `keyhaul item add`: adds an item to a keychain.
struct ItemAdd: RunnableCommand, DecryptingCommand {
  static let helpScreen = HelpScreen(
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
  static let configuration = makeConfiguration(named: "add")

  @Option(help: ArgumentHelp("generic, internet, certificate or key (default: generic).", valueName: "kind"))
  var kind: ItemKindArgument?
  @OptionGroup(title: "Attributes") var attributes: ItemAttributeOptions
  @OptionGroup(title: "The secret") var secret: ItemSecretFlags
  @OptionGroup(title: "If the items are in a backup") var change: ChangeOptions
  @OptionGroup var dryRun: DryRunOptions
  @OptionGroup var target: TargetKeychain
  @OptionGroup(title: "The backup's password") var password: PasswordFlags
  @OptionGroup(title: "Opening the backup") var decryption: DecryptionOptions
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    let itemWithoutSecret = try itemWithoutSecret()
    let selection = try ItemSelection(ItemFilterOptions(kind: kind, attributes: attributes))
    let keychain = try target.edit(selection, accessOptions, change, to: "add", isDryRun: dryRun.isOn, in: session)
    try keychain.check(attributes)
    let item = try addingSecret(to: itemWithoutSecret, in: session)
    let itemName = UntrustedText.escaped(ItemText.name(of: item), columns: 100, ellipsis: session.resultStyle.ellipsis)
    let addition = "\(item.kind.noun) \"\(itemName)\" to \(UntrustedText.escaped(keychain.name))"
    let addedEntries = try keychain.apply(
      .add(item), isDryRun: dryRun.isOn,
      reportedAs: Self.committedChange("an item was added to \(keychain.name)", on: keychain.name), in: session)
    let remark = keychain.remark(about: addedEntries.first?.item ?? item)
    try session.announce((dryRun.isOn ? "Would add " : "Added ") + addition + " (\(remark))\(keychain.ending).")
    if keychain.undecryptableCount > 0 {
      session.info(
        "\(HumanReadable.count(keychain.undecryptableCount, "item")) in this keychain cannot be decrypted here, so Keyhaul "
          + "could not check whether the new item already existed.")
    }
    if session.isJSON {
      try session.writeDocument(
        keychain.document, of: addedEntries, outcome: change.members + (dryRun.isOn ? [("dry_run", true)] : []))
    }
    return .ok
  }

  /// Returns the completed change of a keychain's items, for messages.
  static func committedChange(_ clause: String, on keychain: String) -> CommittedChange {
    CommittedChange(clause, inspectCommand: "keyhaul item find \(ShellQuoting.quote(keychain))")
  }

  /// Returns the item without its secret.
  private func itemWithoutSecret() throws(CommandError) -> KeychainItem {
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

  /// Returns the requested item with its secret, and with the attributes that a certificate or key contains. The user's
  /// own attributes override the contained attributes.
  private func addingSecret(to requestedItem: KeychainItem, in session: Session) throws(CommandError) -> KeychainItem {
    var item: KeychainItem
    switch requestedItem.kind {
    case .genericPassword, .internetPassword:
      item = requestedItem
      item.secret = try session.itemSecret(secret, of: ItemText.name(ItemDescriptor(requestedItem)))
    case .certificate: item = KeychainItem(try CertificateInput.certificate(secret, in: session))
    case .key: item = KeychainItem(try CertificateInput.key(secret, in: session))
    }
    item.attributes.merge(requestedItem.attributes) { _, requestedValue in requestedValue }
    return item
  }
}

/// Reads certificates and keys from the sources that a user names.
enum CertificateInput {
  /// Reads a certificate.
  ///
  /// - Throws: `.refused` or `.damaged` for a file that is not a certificate, or contains a chain of certificates.
  static func certificate(_ flags: ItemSecretFlags, in session: Session) throws(CommandError) -> CertificateAttributes {
    let file = try file(flags, of: "the certificate", isPublic: true, in: session)
    do throws(CertificateError) {
      let certificates = try CertificateAttributes.all(in: file)
      guard certificates.count == 1 else {
        throw CertificateError(
          .unexpectedKind, "it contains \(certificates.count) certificates, but an item stores only one")
      }
      return certificates[0]
    } catch {
      throw CommandError(error, failedAction: "cannot read the certificate")
    }
  }

  /// Reads a key.
  ///
  /// - Throws: `.refused` or `.damaged` for a file that is not an unencrypted key.
  static func key(_ flags: ItemSecretFlags, in session: Session) throws(CommandError) -> KeyMaterial {
    let file = try file(flags, of: "the key", isPublic: false, in: session)
    do throws(CertificateError) {
      return try KeyMaterial(parsing: file)
    } catch {
      throw CommandError(error, failedAction: "cannot read the key")
    }
  }

  /// Reads the file that a flag names. Rejects a missing flag, because certificates and keys cannot be typed.
  private static func file(
    _ flags: ItemSecretFlags, of subject: String, isPublic: Bool, in session: Session
  ) throws(CommandError) -> SensitiveBytes {
    guard flags.isGiven else {
      throw .usage("\(subject) is not given", why: "it is PEM or DER, which cannot be typed", try: "--secret-file PATH")
    }
    return try session.itemSecret(flags, of: subject, isPublic: isPublic)
  }
}
