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

/// The environment of this process.
enum ProgramEnvironment {
  /// The variables by their names. Of two with one name the last counts, as in Foundation; what has no name is none.
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

/// What others may see of the memory of this process, and what is left in it.
enum ProcessMemory {
  /// Switches core dumps off, before there is a secret; programs that are started inherit the limit.
  ///
  /// Where the system refuses, that is no error: whoever may then read the memory may read it anyway.
  static func guardAgainstDumps() { _ = keyhaul_refuse_dumps() }

  /// Has the lists of a large keychain go back to the system where they are given back, and not stay with the process.
  static func giveBackLargeBlocks() { keyhaul_give_back_large_blocks() }

  /// Gives back what one large step has left before the next one begins.
  static func giveBackFreeMemory() { keyhaul_give_back_free_memory() }

  /// Whether the system gives no more memory. Does nothing that a signal handler may not do.
  static var isUsedUp: Bool { keyhaul_memory_is_used_up() != 0 }

  /// Overwrites every secret, at the end of the process. Does nothing that a signal handler may not do.
  static func wipeSecrets() { SecretArena.wipeAll() }
}
