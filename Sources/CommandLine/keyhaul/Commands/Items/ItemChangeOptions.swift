import ArgumentParser
import KeyhaulKit
import Reports

/// The options for the new values in `item update`.
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

  /// Returns the new attribute values, without the secret. A `null` value removes the attribute.
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

  /// Rejects `--new-sync` for an item that requires authentication, unless the access control is removed too.
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
    let values: [(flag: String, code: AttributeCode, value: PropertyValue?)] = [
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
    return values.compactMap { flag, code, value in value.map { (flag, code, $0) } }
  }
}
