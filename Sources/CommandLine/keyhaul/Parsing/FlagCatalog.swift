import ArgumentParser
import KeyhaulKit

/// The description of a flag by the argument parser.
struct FlagHelp {
  /// The names: "--output", "-o".
  let names: [String]
  /// The name of the value: "file"; `nil` if the flag has no value.
  let valueName: String?
  /// The text of the full help.
  let text: String
}

/// The flags of all commands, according to the argument parser.
///
/// Building the catalog takes longer than parsing, so it is used only for help, for flags before the command, and for
/// unknown flags.
enum FlagCatalog {
  /// Returns the names of all flags with a value, of all commands: "--home", "-o".
  static func valueFlags(of root: any ParsableCommand.Type) -> Set<String> {
    Set(commands(below: root).flatMap(\.flags).filter { $0.valueName != nil }.flatMap(\.names))
  }

  /// Returns the names of a command's long flags: "--home", "--json".
  static func names(of command: any ParsableCommand.Type) -> [String] {
    flags(of: command).flatMap(\.names).filter { $0.hasPrefix("--") }
  }

  /// Returns the commands that have a long flag: "inspect", "device create".
  static func commands(with flag: String, of root: any ParsableCommand.Type) -> [String] {
    commands(below: root).filter { command in
      command.isLeaf && command.flags.contains { $0.names.contains(flag) }
    }.map { $0.path.joined(separator: " ") }
  }

  /// Returns the flags of one command or one group of options.
  static func flags(of command: any ParsableArguments.Type) -> [FlagHelp] {
    commands(below: command).first?.flags ?? []
  }

  private struct Command {
    /// The names from the root to the command: "device", "create". Empty for the root.
    let path: [String]
    let isLeaf: Bool
    let flags: [FlagHelp]
  }

  /// Returns the command and all commands below it.
  private static func commands(below root: any ParsableArguments.Type) -> [Command] {
    guard let dump = try? JSONValue(parsing: Array(root._dumpHelp().utf8)), let command = dump["command"] else {
      return []
    }
    return commands(command, path: [])
  }

  private static func commands(_ description: JSONValue, path: [String]) -> [Command] {
    let subcommands = description["subcommands"]?.arrayValue ?? []
    let flags = (description["arguments"]?.arrayValue ?? []).compactMap(flag)
    let command = Command(path: path, isLeaf: subcommands.isEmpty, flags: flags)
    return [command] + subcommands.flatMap { commands($0, path: path + [$0["commandName"]?.stringValue ?? ""]) }
  }

  private static func flag(_ argument: JSONValue) -> FlagHelp? {
    guard let names = argument["names"]?.arrayValue, !names.isEmpty else { return nil }
    return FlagHelp(
      names: names.map { ($0["kind"]?.stringValue == "long" ? "--" : "-") + ($0["name"]?.stringValue ?? "") },
      valueName: argument["kind"]?.stringValue == "option" ? argument["valueName"]?.stringValue : nil,
      text: argument["abstract"]?.stringValue ?? "")
  }
}
