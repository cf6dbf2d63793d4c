public import KeyhaulKit

/// A format that items are exported in: its name, the items that it contains, and how they are written.
///
/// A format is a row, beside the code that writes it. `all` lists the rows; nothing else has to know of a new one.
public struct ExportFormat: Sendable {
  /// As `--format` has it: "genp-plist".
  public let name: String
  /// The end of the names of such files: ".genp.plist".
  public let ending: String
  /// The remark after the name in a list of formats: "passwords".
  public var hint: String?
  /// The kinds of items that it contains; none for the document, which contains every item.
  public let kinds: [ItemKind]
  /// One entry: "password".
  public let noun: String
  /// One secret in it: "private key".
  public let secretNoun: String
  /// Whether an export without secrets would be useless.
  public let needsSecrets: Bool
  /// Whether it contains every item of its kinds, or only those that are of a certain use, such as networks.
  public let containsWholeKinds: Bool
  /// Whether it contains one-time passwords as such, among them those in files of authenticator apps.
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

  /// The formats, in the order in which help lists them.
  public static let all = [
    document, passwords, oneTimeSecrets, codes, migration, certificatesAndKeys, wirelessNetworks, genericPasswordPlist,
    credentialExchange,
  ]

  /// Every item with its attributes, as Keyhaul's own JSON. `ItemDocument` writes it.
  public static let document = ExportFormat(
    "json", kinds: [], noun: "item", needsSecrets: false, append: { _, _ in })

  /// Whether it contains one-time passwords and nothing else.
  public var isOfOneTimePasswords: Bool { containsOneTimePasswords && !containsWholeKinds }

  /// Whether it is Keyhaul's own document.
  public var isDocument: Bool { kinds.isEmpty }
}
