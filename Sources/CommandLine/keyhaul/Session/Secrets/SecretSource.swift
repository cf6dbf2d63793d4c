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
  /// - Throws: `.usage` if several flags name a source, or if a value is not usable.
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
