import ArgumentParser
import KeyhaulKit

/// A flag as the argument parser knows it.
struct FlagHelp {
  /// "--output", "-o"
  let names: [String]
  /// "file"; `nil` for a flag that takes no value.
  let value: String?
  /// What the full help says of it.
  let text: String
}

/// The flags of the verbs, asked of the argument parser itself.
///
/// Used only for help, and where a flag stands before the verb or is unknown: building it costs more than parsing does.
enum FlagCatalog {
  /// "--home", "-o": every flag that takes a value, of every verb.
  static func valueFlags(of root: any ParsableCommand.Type) -> Set<String> {
    Set(commands(below: root).flatMap(\.flags).filter { $0.value != nil }.flatMap(\.names))
  }

  /// "--home", "--json": the long flags of one command.
  static func names(of command: any ParsableCommand.Type) -> [String] {
    flags(of: command).flatMap(\.names).filter { $0.hasPrefix("--") }
  }

  /// The verbs that have a long flag, by their words: "inspect", "device create".
  static func verbs(with flag: String, of root: any ParsableCommand.Type) -> [String] {
    commands(below: root).filter { command in
      command.isVerb && command.flags.contains { $0.names.contains(flag) }
    }.map { $0.words.joined(separator: " ") }
  }

  /// The flags of one command, or of a group of flags.
  static func flags(of command: any ParsableArguments.Type) -> [FlagHelp] {
    commands(below: command).first?.flags ?? []
  }

  private struct Command {
    /// "device", "create"; none for the root.
    let words: [String]
    let isVerb: Bool
    let flags: [FlagHelp]
  }

  /// The command itself, then all below it.
  private static func commands(below root: any ParsableArguments.Type) -> [Command] {
    guard let dump = try? JSONValue(parsing: Array(root._dumpHelp().utf8)), let top = dump["command"] else { return [] }
    return commands(top, words: [])
  }

  private static func commands(_ command: JSONValue, words: [String]) -> [Command] {
    let below = command["subcommands"]?.arrayValue ?? []
    let own = Command(
      words: words, isVerb: below.isEmpty, flags: (command["arguments"]?.arrayValue ?? []).compactMap(flag))
    return [own] + below.flatMap { commands($0, words: words + [$0["commandName"]?.stringValue ?? ""]) }
  }

  private static func flag(_ argument: JSONValue) -> FlagHelp? {
    guard let names = argument["names"]?.arrayValue, !names.isEmpty else { return nil }
    return FlagHelp(
      names: names.map { ($0["kind"]?.stringValue == "long" ? "--" : "-") + ($0["name"]?.stringValue ?? "") },
      value: argument["kind"]?.stringValue == "option" ? argument["valueName"]?.stringValue : nil,
      text: argument["abstract"]?.stringValue ?? "")
  }
}
