import ArgumentParser
import KeyhaulKit

/// Names a family at the type level, so that each has its flags declared once.
protocol SecretFamilyName { static var family: SecretFamily { get } }

extension SecretFamilyName {
  /// The flag of a file; the password of a backup, which is wanted most, has a short form too.
  fileprivate static var fileFlag: NameSpecification {
    let name = NameSpecification.Element.customLong(family.flagPrefix + "-file")
    return family == .password ? [.customShort("p"), name] : [name]
  }
}

enum PasswordName: SecretFamilyName { static let family = SecretFamily.password }
enum OtherPasswordName: SecretFamilyName { static let family = SecretFamily.otherPassword }
enum NewPasswordName: SecretFamilyName { static let family = SecretFamily.newPassword }
enum PasscodeName: SecretFamilyName { static let family = SecretFamily.passcode }
enum NewPasscodeName: SecretFamilyName { static let family = SecretFamily.newPasscode }
enum ItemSecretName: SecretFamilyName { static let family = SecretFamily.secret }
enum NewItemSecretName: SecretFamilyName { static let family = SecretFamily.newSecret }

typealias PasswordFlags = SecretFlags<PasswordName>
typealias OtherPasswordFlags = SecretFlags<OtherPasswordName>
typealias NewPasswordFlags = SecretFlags<NewPasswordName>
typealias PasscodeFlags = SecretFlags<PasscodeName>
typealias NewPasscodeFlags = SecretFlags<NewPasscodeName>
typealias ItemSecretFlags = SecretFlags<ItemSecretName>
typealias NewItemSecretFlags = SecretFlags<NewItemSecretName>

/// Where a secret comes from: a file, a descriptor or a command, never an argument.
struct SecretFlags<Name: SecretFamilyName>: ParsableArguments {
  @Option(
    name: Name.fileFlag,
    help: ArgumentHelp("Read the \(Name.family.noun) from a file; - is standard input.", valueName: "path"),
    completion: .file())
  var file: String?

  @Option(
    name: .customLong(Name.family.flagPrefix + "-fd"),
    help: ArgumentHelp("Read the \(Name.family.noun) from an open file descriptor.", valueName: "number"))
  var descriptor: Int32?

  @Option(
    name: .customLong(Name.family.flagPrefix + "-command"),
    help: ArgumentHelp("Run a command with the shell and use its output.", valueName: "command"),
    completion: .shellCommand("compgen -c"))
  var command: String?

  init() {}

  var family: SecretFamily { Name.family }

  /// Whether the user named a source.
  var isGiven: Bool { file != nil || descriptor != nil || command != nil }

  /// What names a source, as the user knows it; `nil` where nothing does and a prompt would ask.
  func givenSource(environment: [String: String]) throws(CommandFailure) -> SecretSource.Named? {
    guard try source(environment: environment) != .prompt else { return nil }
    if isGiven { return .flag("--\(family.flagPrefix)-\(file != nil ? "file" : descriptor != nil ? "fd" : "command")") }
    return .variable(
      environment["KEYHAUL_PASSWORD_FILE"]?.isEmpty == false ? "KEYHAUL_PASSWORD_FILE" : "KEYHAUL_PASSWORD_COMMAND")
  }

  /// Where to read from: the flags, then the environment, then a prompt.
  func source(environment: [String: String]) throws(CommandFailure) -> SecretSource {
    try SecretSource.choose(
      family, descriptor: descriptor, file: file, command: command, environment: environment)
  }
}
