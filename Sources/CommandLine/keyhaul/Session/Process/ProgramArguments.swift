import CProgram
import KeyhaulKit

/// The arguments of this process.
enum ProgramArguments {
  /// All arguments, starting with the program's name. Also works if `/proc` is not mounted.
  static var all: [String] {
    guard var next = keyhaul_program_arguments() else { return CommandLine.arguments }
    var arguments: [String] = []
    while let argument = next.pointee {
      arguments.append(String(cString: argument))
      next += 1
    }
    return arguments
  }
}

/// The environment of this process.
enum ProgramEnvironment {
  /// The variables by name. If a name occurs twice, the last one counts, as in Foundation. Entries without a name are
  /// ignored.
  static var all: [String: String] {
    var variables: [String: String] = [:]
    guard var next = keyhaul_program_environment() else { return variables }
    while let entry = next.pointee {
      next += 1
      let text = String(cString: entry).utf8
      guard let equals = text.firstIndex(of: UInt8(ascii: "=")), equals > text.startIndex else { continue }
      let value = String(decoding: text[text.index(after: equals)...], as: UTF8.self)
      variables[String(decoding: text[..<equals], as: UTF8.self)] = value
    }
    return variables
  }
}
