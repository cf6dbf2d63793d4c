import CProgram
import KeyhaulKit

/// The arguments of this process.
enum ProgramArguments {
  /// All of them, the program's name first, also where `/proc` is not mounted.
  static var all: [String] {
    guard let handed = keyhaul_program_arguments() else { return CommandLine.arguments }
    var arguments: [String] = []
    var next = handed
    while let argument = next.pointee {
      arguments.append(String(cString: argument))
      next += 1
    }
    return arguments
  }
}
