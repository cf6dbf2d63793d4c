import ArgumentParser
import KeyhaulKit
import Reports

/// What `item update` changes in the items that it meets.
struct ItemChangeOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The new account.", valueName: "text"))
  var newAccount: String?

  @Option(help: ArgumentHelp("The new service of a generic password.", valueName: "text"))
  var newService: String?

  @Option(help: ArgumentHelp("The new server of an internet password.", valueName: "text"))
  var newServer: String?

  @Option(help: ArgumentHelp("Its new protocol: https, imap, or a four-letter code.", valueName: "text"))
  var newProtocol: String?

  @Option(help: ArgumentHelp("Its new port.", valueName: "number"))
  var newPort: UInt16?

  @Option(help: ArgumentHelp("Its new path.", valueName: "text"))
  var newPath: String?

  @Option(help: ArgumentHelp("The new label.", valueName: "text"))
  var newLabel: String?

  @Option(help: ArgumentHelp("The new application tag of a key.", valueName: "text"))
  var newApplicationTag: String?

  @Option(help: ArgumentHelp("The access group to move to.", valueName: "group"))
  var newAccessGroup: String?

  @Option(help: ArgumentHelp("When the item can be read from now on, and whether it may leave.", valueName: "class"))
  var newProtection: ProtectionArgument?

  @Flag(inversion: .prefixedNo, help: "Whether the item syncs between devices from now on.")
  var newSync: Bool?

  @Flag(inversion: .prefixedNo, help: "Whether reading it requires user presence from now on.")
  var newUserPresence: Bool?

  @Flag(inversion: .prefixedNo, help: "Whether reading it requires biometry from now on.")
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

  /// What a person must do from now on before the item opens; `nil` where that stays as it is.
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
