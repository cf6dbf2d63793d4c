public import KeyhaulKit

/// A format for exported items: its name, the items that it contains, and the functions that write it.
///
/// A new format needs only an entry in `all`. Each format is defined next to the code that writes it.
public struct ExportFormat: Sendable {
  /// The value of `--format`: "genp-plist".
  public let name: String
  /// The suffix of file names: ".genp.plist".
  public let ending: String
  /// The description in a list of formats: "passwords".
  public var hint: String?
  /// The kinds of items in the format; empty for the document, which contains every item.
  public let kinds: [ItemKind]
  /// The name of an entry: "password".
  public let noun: String
  /// The name of a secret: "private key".
  public let secretNoun: String
  /// Whether an export without secrets would be useless.
  public let needsSecrets: Bool
  /// Whether the format contains every item of its kinds. `false` if it contains only some, such as Wi-Fi networks.
  public let containsWholeKinds: Bool
  /// Whether the format has entries for one-time passwords, including those in files of authenticator apps.
  public let containsOneTimePasswords: Bool
  let begin: @Sendable (inout ItemExportWriter) -> Void
  let append: @Sendable (inout ItemExportWriter, KeychainItem) -> Void
  let end: @Sendable (inout ItemExportWriter) -> Void

  init(
    _ name: String, ending: String? = nil, hint: String? = nil, kinds: [ItemKind], noun: String,
    secretNoun: String? = nil, needsSecrets: Bool = true, containsWholeKinds: Bool = true,
    containsOneTimePasswords: Bool = false,
    begin: @escaping @Sendable (inout ItemExportWriter) -> Void = { _ in },
    append: @escaping @Sendable (inout ItemExportWriter, KeychainItem) -> Void,
    end: @escaping @Sendable (inout ItemExportWriter) -> Void = { _ in }
  ) {
    self.name = name
    self.ending = ending ?? ".\(name)"
    self.hint = hint
    self.kinds = kinds
    self.noun = noun
    self.secretNoun = secretNoun ?? noun
    self.needsSecrets = needsSecrets
    self.containsWholeKinds = containsWholeKinds
    self.containsOneTimePasswords = containsOneTimePasswords
    self.begin = begin
    self.append = append
    self.end = end
  }

  /// All formats, in the order of the help.
  public static let all = [
    document, passwords, oneTimeSecrets, codes, migration, certificatesAndKeys, wirelessNetworks, genericPasswordPlist,
    credentialExchange,
  ]

  /// Every item with its attributes, in Keyhaul's own JSON format. `ItemDocument` writes it.
  public static let document = ExportFormat(
    "json", kinds: [], noun: "item", needsSecrets: false, append: { _, _ in })

  /// Whether the format contains only one-time passwords.
  public var containsOnlyOneTimePasswords: Bool { containsOneTimePasswords && !containsWholeKinds }

  /// Whether this is Keyhaul's own JSON format.
  public var isDocument: Bool { kinds.isEmpty }
}
