import ArgumentParser
import KeyhaulKit
import Reports

/// The options that select items.
struct ItemFilterOptions {
  static let kindHelp = ArgumentHelp("generic, internet, certificate or key (default any).", valueName: "kind")

  let kind: ItemKindArgument?
  var attributes: ItemAttributeOptions
}

/// The attributes of an item except its kind, with the same flags in all commands.
struct ItemAttributeOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The account.", valueName: "text"))
  var account: String?

  @Option(help: ArgumentHelp("The service of a generic password.", valueName: "text"))
  var service: String?

  @Option(help: ArgumentHelp("The server of an internet password.", valueName: "text"))
  var server: String?

  @Option(
    name: .customLong("protocol"),
    help: ArgumentHelp("The internet password's protocol: https, imap, or a four-letter code.", valueName: "text"))
  var networkProtocol: String?

  @Option(help: ArgumentHelp("The port of an internet password.", valueName: "number"))
  var port: UInt16?

  @Option(help: ArgumentHelp("The path of an internet password.", valueName: "text"))
  var path: String?

  @Option(help: ArgumentHelp("The label.", valueName: "text"))
  var label: String?

  @Option(help: ArgumentHelp("The application tag of a key.", valueName: "text"))
  var applicationTag: String?

  @Option(help: ArgumentHelp("The access group.", valueName: "group"))
  var accessGroup: String?

  @Option(help: ArgumentHelp("Act as this app, with its access groups.", valueName: "name"))
  var app: String?

  @Option(
    help: ArgumentHelp(
      "When the item can be read, and whether it can move to another "
        + "device.", valueName: "class"))
  var protection: ProtectionArgument?

  @Flag(help: "Sync the item with iCloud Keychain.")
  var sync = false

  @Flag(help: "Reading the item requires user presence.")
  var userPresence = false

  @Flag(help: "Reading the item requires biometry.")
  var biometry = false

  init() {}
}

extension ItemAttributeOptions {
  /// Returns the attributes that the flags specify.
  ///
  /// - Parameter kind: The kind of the item; `nil` if the item may have any kind.
  /// - Throws: `.usage` for an attribute that items of this kind do not have, and for an empty access group.
  func attributes(of kind: ItemKind?) throws(CommandError) -> AttributeMap<PropertyValue> {
    var values: AttributeMap<PropertyValue> = [:]
    for (flag, code, value) in try givenValues() {
      if let kind, AttributeTable.definition(of: code, in: kind) == nil {
        let owners = ItemKind.allCases.filter { AttributeTable.definition(of: code, in: $0) != nil }
        throw .usage(
          "--\(flag) is not an attribute of \(ItemText.nounWithArticle(kind))",
          why: "it belongs to \(HumanReadable.list(owners.map { $0.noun + "s" }))",
          try: owners.first.map { "--kind \(ItemText.kind($0))" })
      }
      values[code] = value
    }
    return values
  }

  /// Rejects a password item without any name. Empty names count as missing, because they come from unset variables in
  /// scripts.
  func checkName() throws(CommandError) {
    let names = [
      (flag: "--service", value: service), (flag: "--account", value: account), (flag: "--server", value: server),
      (flag: "--label", value: label),
    ]
    guard names.allSatisfy({ ($0.value ?? "").isEmpty }) else { return }
    let emptyFlags = names.filter { $0.value != nil }.map(\.flag)
    throw .usage(
      "the item has no name",
      why: emptyFlags.isEmpty
        ? "it could not be told apart from another item"
        : "\(HumanReadable.list(emptyFlags)) \(emptyFlags.count == 1 ? "is" : "are") empty",
      try: "--service NAME --account NAME")
  }

  /// The attributes that are compared as text and may contain stars, as the user typed them.
  var texts: [AttributeCode: String] {
    var texts: [AttributeCode: String] = [:]
    texts[.account] = account
    texts[.service] = service
    texts[.server] = server
    texts[.path] = path
    texts[.label] = label
    texts[.applicationTag] = applicationTag
    return texts
  }

  /// The authentication that is required to read the item.
  var constraints: [AccessConstraint] {
    (userPresence ? [.userPresence] : []) + (biometry ? [.biometryAny] : [])
  }

  /// Returns the attributes for which a flag was given, with the flag's name.
  private func givenValues() throws(CommandError) -> [(flag: String, code: AttributeCode, value: PropertyValue)] {
    if accessGroup?.isEmpty == true { throw .usage("--access-group is empty", try: "--access-group GROUP") }
    let networkProtocol = try networkProtocol.map { (text) throws(CommandError) in try ProtocolCode.code(of: text) }
    let values: [(flag: String, code: AttributeCode, value: PropertyValue?)] = [
      ("account", .account, account.map { .string($0) }), ("service", .service, service.map { .string($0) }),
      ("server", .server, server.map { .string($0) }), ("protocol", .protocolType, networkProtocol.map { .string($0) }),
      ("port", .port, port.map { .integer(Int64($0)) }), ("path", .path, path.map { .string($0) }),
      ("label", .label, label.map { .string($0) }),
      // Apps create tags from the UTF-8 bytes of a text, so the value is data.
      ("application-tag", .applicationTag, applicationTag.map { .data(Array($0.utf8)) }),
      ("protection", .protection, protection.map { .string($0.protection.rawValue) }),
    ]
    return values.compactMap { flag, code, value in value.map { (flag, code, $0) } }
  }
}

extension AccessConstraint {
  /// Rejects constraints that an access control cannot combine.
  ///
  /// Source: Apple `SecAccessControl.m` (`SecAccessControlCreateWithFlags`).
  /// - Parameter prefix: The start of the flags' names after the hyphens.
  static func check(_ constraints: [AccessConstraint], sync: Bool, prefix: String = "") throws(CommandError) {
    if constraints.count > 1 {
      throw .usage(
        "--\(prefix)user-presence and --\(prefix)biometry cannot be used together",
        why: "biometry and the passcode already prove user presence", try: "use only one of them")
    }
    if sync, !constraints.isEmpty {
      throw .usage(
        "--\(prefix)sync cannot be used with --\(prefix)user-presence or --\(prefix)biometry",
        why: "an item with an access control does not sync", try: "use only one of them")
    }
  }
}
