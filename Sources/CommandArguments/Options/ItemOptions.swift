package import ArgumentParser
package import KeychainFormats

/// The kind of an item in a user's words.
package struct ItemKindArgument: Equatable, Sendable, ExpressibleByArgument {
  package let kind: ItemKind

  package static let words: [(String, ItemKind)] = [
    ("generic", .genericPassword), ("internet", .internetPassword), ("certificate", .certificate), ("key", .key),
  ]

  package init?(argument: String) {
    guard let match = Self.words.first(where: { $0.0 == argument }) else { return nil }
    kind = match.1
  }

  package static var allValueStrings: [String] { words.map(\.0) }
}

/// A protection class in a user's words, or by its code.
package struct ProtectionArgument: Equatable, Sendable, ExpressibleByArgument {
  package let protection: ProtectionClass

  package init?(argument: String) {
    guard let protection = ProtectionClass(named: argument) else { return nil }
    self.protection = protection
  }

  package static var allValueStrings: [String] { ProtectionClass.allCases.map(\.word) }
}

/// Which items a verb means.
package struct ChosenItems {
  package static let kindHelp = ArgumentHelp("generic, internet, certificate or key (default any).", valueName: "kind")

  package let kind: ItemKindArgument?
  package var attributes: ItemAttributeOptions

  package init(kind: ItemKindArgument?, attributes: ItemAttributeOptions) {
    self.kind = kind
    self.attributes = attributes
  }
}

/// The attributes of an item besides its kind, with one spelling for all verbs.
package struct ItemAttributeOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The account.", valueName: "text"))
  package var account: String?

  @Option(help: ArgumentHelp("The service of a generic password.", valueName: "text"))
  package var service: String?

  @Option(help: ArgumentHelp("The server of an internet password.", valueName: "text"))
  package var server: String?

  @Option(
    name: .customLong("protocol"),
    help: ArgumentHelp("Its protocol: https, imap, or a four-letter code.", valueName: "text"))
  package var networkProtocol: String?

  @Option(help: ArgumentHelp("Its port.", valueName: "number"))
  package var port: UInt16?

  @Option(help: ArgumentHelp("Its path.", valueName: "text"))
  package var path: String?

  @Option(help: ArgumentHelp("The label.", valueName: "text"))
  package var label: String?

  @Option(help: ArgumentHelp("The application tag of a key.", valueName: "text"))
  package var applicationTag: String?

  @Option(help: ArgumentHelp("The access group.", valueName: "group"))
  package var accessGroup: String?

  @Option(help: ArgumentHelp("Act as this app, with its access groups.", valueName: "name"))
  package var app: String?

  @Option(help: ArgumentHelp("When the item can be read, and whether it may leave the device.", valueName: "class"))
  package var protection: ProtectionArgument?

  @Flag(help: "The item syncs between devices.")
  package var sync = false

  @Flag(help: "Reading it requires user presence.")
  package var userPresence = false

  @Flag(help: "Reading it requires biometry.")
  package var biometry = false

  package init() {}
}
