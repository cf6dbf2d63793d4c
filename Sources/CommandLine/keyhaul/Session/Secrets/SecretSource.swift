import ArgumentParser
import KeyhaulKit

/// The source of a secret.
enum SecretSource: Equatable, Sendable {
  case descriptor(Int32)
  case file(String)
  case standardInput
  case command(String)
  case prompt

  /// The flag or environment variable that named a source.
  enum Origin: Equatable, Sendable {
    case flag(String)
    case variable(String)

    var name: String {
      switch self {
      case .flag(let name), .variable(let name): name
      }
    }

    var isFlag: Bool { if case .flag = self { true } else { false } }

    /// Advice on running the command without this source.
    var removalAdvice: String {
      switch self {
      case .flag(let flag): "leave \(flag) out"
      case .variable(let variable): "put \(variable)= before the command"
      }
    }
  }

  /// Chooses the source: descriptor, file or command from the flags, then file or command from the environment, then a
  /// prompt.
  ///
  /// - Throws: `.usage` if several flags of the same kind are given, or if a value is not usable.
  static func resolve(
    _ kind: SecretKind, descriptor: Int32?, file: String?, command: String?, environment: [String: String]
  ) throws(CommandError) -> SecretSource {
    let prefix = "--\(kind.flagPrefix)"
    let givenFlags = [
      descriptor.map { _ in "\(prefix)-fd" }, file.map { _ in "\(prefix)-file" },
      command.map { _ in "\(prefix)-command" },
    ].compactMap { $0 }
    if givenFlags.count > 1 {
      throw .usage(
        "\(HumanReadable.list(givenFlags)) cannot be used together",
        why: "each specifies a source for the \(kind.noun)",
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
    if let file { return try fileSource(file, named: "\(prefix)-file") }
    if let command { return try command.isEmpty ? fileSource("", named: "\(prefix)-command") : .command(command) }
    guard kind.hasEnvironmentVariables else { return .prompt }
    if let file = environment["KEYHAUL_PASSWORD_FILE"], !file.isEmpty {
      return try fileSource(file, named: "KEYHAUL_PASSWORD_FILE")
    }
    if let command = environment["KEYHAUL_PASSWORD_COMMAND"], !command.isEmpty { return .command(command) }
    return .prompt
  }

  /// Returns the source for the value of a flag or variable; `-` is standard input.
  private static func fileSource(_ file: String, named name: String) throws(CommandError) -> SecretSource {
    guard !file.isEmpty else { throw .usage("\(name) is empty", try: "\(name) with a value") }
    return file == "-" ? .standardInput : .file(file)
  }
}

/// A type for each kind of secret, so that its flags can be declared once by a generic type.
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

/// A kind of secret that a command may need. A device's passcode is not a backup's password, so each kind has its own
/// flags, and every prompt names the kind and its owner.
enum SecretKind: String, CaseIterable, Sendable {
  case password
  /// The password of the second of two backups.
  case otherPassword = "other-password"
  case newPassword = "new-password"
  case passcode
  case newPasscode = "new-passcode"
  case secret
  case newSecret = "new-secret"
  case deviceKey = "device-key"
  /// The class keys of a keychain database.
  case classKeys = "class-keys"

  /// The start of the flags' names, after the two hyphens.
  var flagPrefix: String { rawValue }

  /// The name in prompts and errors: "new password".
  var noun: String { self == .otherPassword ? "password" : rawValue.replacing("-", with: " ") }

  /// Whether environment variables may name a source. Only the password of a backup has them.
  var hasEnvironmentVariables: Bool { self == .password }

  /// Whether the bytes are used unchanged. Other secrets are text, whose trailing newline is removed.
  var isReadVerbatim: Bool { [.secret, .newSecret, .deviceKey, .classKeys].contains(self) }

  /// Returns whether a byte order mark before the text is removed immediately.
  ///
  /// A new password must be something that a user can type, and a device counts failed passcodes. An existing backup
  /// password is first tried with the mark, which may be part of it.
  ///
  /// - Parameter isNew: Whether the secret is being set.
  func dropsByteOrderMark(isNew: Bool) -> Bool {
    switch self {
    case .newPassword, .passcode, .newPasscode: true
    case .password, .otherPassword: isNew
    case .secret, .newSecret, .deviceKey, .classKeys: false
    }
  }

  /// The flags as a list: "--password-file, --password-fd or --password-command".
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
