import ArgumentParser
import KeyhaulKit

/// A type for each kind of secret. The generic type `SecretFlags` declares the flags once for all kinds.
protocol SecretKindTag { static var kind: SecretKind { get } }

extension SecretKindTag {
  /// The flag that names a file. A backup's password, which is used most, also has a short form.
  fileprivate static var fileFlag: NameSpecification {
    let name = NameSpecification.Element.customLong(kind.flagPrefix + "-file")
    return kind == .password ? [.customShort("p"), name] : [name]
  }
}

enum PasswordTag: SecretKindTag { static let kind = SecretKind.password }
enum OtherPasswordTag: SecretKindTag { static let kind = SecretKind.otherPassword }
enum NewPasswordTag: SecretKindTag { static let kind = SecretKind.newPassword }
enum PasscodeTag: SecretKindTag { static let kind = SecretKind.passcode }
enum NewPasscodeTag: SecretKindTag { static let kind = SecretKind.newPasscode }
enum ItemSecretTag: SecretKindTag { static let kind = SecretKind.secret }
enum NewItemSecretTag: SecretKindTag { static let kind = SecretKind.newSecret }

typealias PasswordFlags = SecretFlags<PasswordTag>
typealias OtherPasswordFlags = SecretFlags<OtherPasswordTag>
typealias NewPasswordFlags = SecretFlags<NewPasswordTag>
typealias PasscodeFlags = SecretFlags<PasscodeTag>
typealias NewPasscodeFlags = SecretFlags<NewPasscodeTag>
typealias ItemSecretFlags = SecretFlags<ItemSecretTag>
typealias NewItemSecretFlags = SecretFlags<NewItemSecretTag>

/// The flags that name the source of a secret: a file, a descriptor or a command, never the secret itself.
struct SecretFlags<Tag: SecretKindTag>: ParsableArguments {
  @Option(
    name: Tag.fileFlag,
    help: ArgumentHelp("Read the \(Tag.kind.noun) from a file; - is standard input.", valueName: "path"),
    completion: .file())
  var file: String?

  @Option(
    name: .customLong(Tag.kind.flagPrefix + "-fd"),
    help: ArgumentHelp("Read the \(Tag.kind.noun) from an open file descriptor.", valueName: "number"))
  var descriptor: Int32?

  @Option(
    name: .customLong(Tag.kind.flagPrefix + "-command"),
    help: ArgumentHelp("Run a shell command and use its output.", valueName: "command"),
    completion: .shellCommand("compgen -c"))
  var command: String?

  init() {}

  var kind: SecretKind { Tag.kind }

  /// Whether the user named a source.
  var isGiven: Bool { file != nil || descriptor != nil || command != nil }

  /// Returns the flag or variable that names a source; `nil` if Keyhaul would ask.
  func origin(environment: [String: String]) throws(CommandError) -> SecretSource.Origin? {
    guard try source(environment: environment) != .prompt else { return nil }
    if isGiven { return .flag("--\(kind.flagPrefix)-\(file != nil ? "file" : descriptor != nil ? "fd" : "command")") }
    return .variable(
      environment["KEYHAUL_PASSWORD_FILE"]?.isEmpty == false ? "KEYHAUL_PASSWORD_FILE" : "KEYHAUL_PASSWORD_COMMAND")
  }

  /// Returns the source: from the flags, then the environment, then a prompt.
  func source(environment: [String: String]) throws(CommandError) -> SecretSource {
    try SecretSource.resolve(
      kind, descriptor: descriptor, file: file, command: command, environment: environment)
  }
}
