package import ArgumentParser

/// Names a family at the type level, so that each has its flags declared once.
package protocol SecretFamilyName { static var family: SecretFamily { get } }

extension SecretFamilyName {
  /// The flag of a file; the password of a backup, which is wanted most, has a short form too.
  fileprivate static var fileFlag: NameSpecification {
    let name = NameSpecification.Element.customLong(family.flagPrefix + "-file")
    return family == .password ? [.customShort("p"), name] : [name]
  }
}

package enum PasswordName: SecretFamilyName { package static let family = SecretFamily.password }
package enum OtherPasswordName: SecretFamilyName { package static let family = SecretFamily.otherPassword }
package enum NewPasswordName: SecretFamilyName { package static let family = SecretFamily.newPassword }
package enum PasscodeName: SecretFamilyName { package static let family = SecretFamily.passcode }
package enum NewPasscodeName: SecretFamilyName { package static let family = SecretFamily.newPasscode }
package enum ItemSecretName: SecretFamilyName { package static let family = SecretFamily.secret }
package enum NewItemSecretName: SecretFamilyName { package static let family = SecretFamily.newSecret }

package typealias PasswordFlags = SecretFlags<PasswordName>
package typealias OtherPasswordFlags = SecretFlags<OtherPasswordName>
package typealias NewPasswordFlags = SecretFlags<NewPasswordName>
package typealias PasscodeFlags = SecretFlags<PasscodeName>
package typealias NewPasscodeFlags = SecretFlags<NewPasscodeName>
package typealias ItemSecretFlags = SecretFlags<ItemSecretName>
package typealias NewItemSecretFlags = SecretFlags<NewItemSecretName>

/// Where a secret comes from: a file, a descriptor or a command, never an argument.
package struct SecretFlags<Name: SecretFamilyName>: ParsableArguments {
  @Option(
    name: Name.fileFlag,
    help: ArgumentHelp("Read the \(Name.family.noun) from a file; - is standard input.", valueName: "path"),
    completion: .file())
  package var file: String?

  @Option(
    name: .customLong(Name.family.flagPrefix + "-fd"),
    help: ArgumentHelp("Read the \(Name.family.noun) from an open file descriptor.", valueName: "number"))
  package var descriptor: Int32?

  @Option(
    name: .customLong(Name.family.flagPrefix + "-command"),
    help: ArgumentHelp("Run a command with the shell and use its output.", valueName: "command"),
    completion: .shellCommand("compgen -c"))
  package var command: String?

  package init() {}

  package var family: SecretFamily { Name.family }

  /// Whether the user named a source.
  package var isGiven: Bool { file != nil || descriptor != nil || command != nil }

  /// What names a source, as the user knows it; `nil` where nothing does and a prompt would ask.
  package func givenSource(environment: [String: String]) throws(CommandFailure) -> SecretSource.Named? {
    guard try source(environment: environment) != .prompt else { return nil }
    if isGiven { return .flag("--\(family.flagPrefix)-\(file != nil ? "file" : descriptor != nil ? "fd" : "command")") }
    return .variable(
      environment["KEYHAUL_PASSWORD_FILE"]?.isEmpty == false ? "KEYHAUL_PASSWORD_FILE" : "KEYHAUL_PASSWORD_COMMAND")
  }

  /// Where to read from: the flags, then the environment, then a prompt.
  package func source(environment: [String: String]) throws(CommandFailure) -> SecretSource {
    try SecretSource.choose(
      family, descriptor: descriptor, file: file, command: command, environment: environment)
  }
}
