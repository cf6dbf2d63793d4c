import ArgumentParser
import KeyhaulKit

/// The kind of an item in a user's words.
struct ItemKindArgument: Equatable, Sendable, ExpressibleByArgument {
  let kind: ItemKind

  static let words: [(String, ItemKind)] = [
    ("generic", .genericPassword), ("internet", .internetPassword), ("certificate", .certificate), ("key", .key),
  ]

  init?(argument: String) {
    guard let match = Self.words.first(where: { $0.0 == argument }) else { return nil }
    kind = match.1
  }

  static var allValueStrings: [String] { words.map(\.0) }
}

/// A protection class in a user's words, or by its code.
struct ProtectionArgument: Equatable, Sendable, ExpressibleByArgument {
  let protection: ProtectionClass

  init?(argument: String) {
    guard let protection = ProtectionClass(named: argument) else { return nil }
    self.protection = protection
  }

  static var allValueStrings: [String] { ProtectionClass.allCases.map(\.word) }
}

/// Which items a verb means.
struct ChosenItems {
  static let kindHelp = ArgumentHelp("generic, internet, certificate or key (default any).", valueName: "kind")

  let kind: ItemKindArgument?
  var attributes: ItemAttributeOptions

  init(kind: ItemKindArgument?, attributes: ItemAttributeOptions) {
    self.kind = kind
    self.attributes = attributes
  }
}

/// The attributes of an item besides its kind, with one spelling for all verbs.
struct ItemAttributeOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The account.", valueName: "text"))
  var account: String?

  @Option(help: ArgumentHelp("The service of a generic password.", valueName: "text"))
  var service: String?

  @Option(help: ArgumentHelp("The server of an internet password.", valueName: "text"))
  var server: String?

  @Option(
    name: .customLong("protocol"),
    help: ArgumentHelp("Its protocol: https, imap, or a four-letter code.", valueName: "text"))
  var networkProtocol: String?

  @Option(help: ArgumentHelp("Its port.", valueName: "number"))
  var port: UInt16?

  @Option(help: ArgumentHelp("Its path.", valueName: "text"))
  var path: String?

  @Option(help: ArgumentHelp("The label.", valueName: "text"))
  var label: String?

  @Option(help: ArgumentHelp("The application tag of a key.", valueName: "text"))
  var applicationTag: String?

  @Option(help: ArgumentHelp("The access group.", valueName: "group"))
  var accessGroup: String?

  @Option(help: ArgumentHelp("Act as this app, with its access groups.", valueName: "name"))
  var app: String?

  @Option(help: ArgumentHelp("When the item can be read, and whether it may leave the device.", valueName: "class"))
  var protection: ProtectionArgument?

  @Flag(help: "The item syncs between devices.")
  var sync = false

  @Flag(help: "Reading it requires user presence.")
  var userPresence = false

  @Flag(help: "Reading it requires biometry.")
  var biometry = false

  init() {}
}
