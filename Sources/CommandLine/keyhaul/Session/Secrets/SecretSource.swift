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
        "\(Amounts.list(given)) cannot be used together",
        why: "each gives a source for the \(family.noun)",
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
