import ArgumentParser
import KeyhaulKit

/// Where a secret is read from.
enum SecretSource: Equatable, Sendable {
  case descriptor(Int32)
  case file(String)
  case standardInput
  case command(String)
  case prompt

  /// What names a source: a flag of the command, or a variable of the environment.
  enum Named: Equatable, Sendable {
    case flag(String)
    case variable(String)

    var name: String {
      switch self {
      case .flag(let name), .variable(let name): name
      }
    }

    var isFlag: Bool { if case .flag = self { true } else { false } }

    /// What to do for the command to do without.
    var withoutIt: String {
      switch self {
      case .flag(let flag): "leave \(flag) out"
      case .variable(let variable): "put \(variable)= before the command"
      }
    }
  }

  /// Decides by the order that users can rely on: descriptor, file, command, then the same two from the environment, then
  /// a prompt. A flag beats the environment.
  ///
  /// - Throws: `.usage` where two flags of the family are given, or one that cannot be meant.
  static func choose(
    _ family: SecretFamily, descriptor: Int32?, file: String?, command: String?, environment: [String: String]
  ) throws(CommandFailure) -> SecretSource {
    let prefix = "--\(family.flagPrefix)"
    let given = [
      descriptor.map { _ in "\(prefix)-fd" }, file.map { _ in "\(prefix)-file" },
      command.map { _ in "\(prefix)-command" },
    ].compactMap { $0 }
    if given.count > 1 {
      throw .usage(
        "\(HumanReadable.list(given)) cannot be used together",
        why: "each specifies a source for the \(family.noun)",
        try: "use only one of them")
    }
    if let descriptor {
      guard descriptor >= 0, descriptor != 1, descriptor != 2 else {
        throw .usage(
          "\(prefix)-fd \(descriptor) cannot be read", why: "descriptors 1 and 2 are the program's output",
          try: "\(prefix)-fd 3 3< FILE")
      }
      return descriptor == 0 ? .standardInput : .descriptor(descriptor)
    }
    if let file { return try named(file, by: "\(prefix)-file") }
    if let command { return try command.isEmpty ? named("", by: "\(prefix)-command") : .command(command) }
    guard family.hasEnvironment else { return .prompt }
    if let file = environment["KEYHAUL_PASSWORD_FILE"], !file.isEmpty {
      return try named(file, by: "KEYHAUL_PASSWORD_FILE")
    }
    if let command = environment["KEYHAUL_PASSWORD_COMMAND"], !command.isEmpty { return .command(command) }
    return .prompt
  }

  private static func named(_ file: String, by source: String) throws(CommandFailure) -> SecretSource {
    guard !file.isEmpty else { throw .usage("\(source) is empty", try: "\(source) with a value") }
    return file == "-" ? .standardInput : .file(file)
  }
}

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
    help: ArgumentHelp("Run a shell command and use its output.", valueName: "command"),
    completion: .shellCommand("compgen -c"))
  var command: String?

  init() {}

  var family: SecretFamily { Name.family }

  /// Whether the user named a source.
  var isGiven: Bool { file != nil || descriptor != nil || command != nil }

  /// What names a source, as the user knows it; `nil` if nothing does and a prompt would ask.
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

/// The kinds of secret that a verb may ask for. A device's passcode is not a backup's password, so each has its own
/// flags, and every prompt says which it wants and whose.
enum SecretFamily: String, CaseIterable, Sendable {
  case password
  /// Of the second of two backups.
  case otherPassword = "other-password"
  case newPassword = "new-password"
  case passcode
  case newPasscode = "new-passcode"
  case secret
  case newSecret = "new-secret"
  case deviceKey = "device-key"
  /// Of a keychain's own database.
  case classKeys = "class-keys"

  /// What flags start with, after the two hyphens.
  var flagPrefix: String { rawValue }

  /// How prompts and errors call it: "new password".
  var noun: String { self == .otherPassword ? "password" : rawValue.replacing("-", with: " ") }

  /// The environment may name a source for the password of a backup alone.
  var hasEnvironment: Bool { self == .password }

  /// Bytes of an item and of keys are kept as they are; what a person types or saves ends in a newline that is not meant.
  var isTakenVerbatim: Bool { [.secret, .newSecret, .deviceKey, .classKeys].contains(self) }

  /// Whether a byte order mark before the text is left out at once.
  ///
  /// What is being set should be what a person can type, and a device counts wrong passcodes. A backup's password is tried
  /// with the mark first, since it may have one.
  ///
  /// - Parameter isNew: Whether it is being set.
  func isTakenWithoutMark(isNew: Bool) -> Bool {
    switch self {
    case .newPassword, .passcode, .newPasscode: true
    case .password, .otherPassword: isNew
    case .secret, .newSecret, .deviceKey, .classKeys: false
    }
  }

  /// "--password-file, --password-fd or --password-command"
  var flags: String {
    let endings =
      switch self {
      case .classKeys: ["file"]
      case .deviceKey: ["file", "fd"]
      default: ["file", "fd", "command"]
      }
    return HumanReadable.list(endings.map { "--\(flagPrefix)-\($0)" }, conjunction: "or")
  }
}
