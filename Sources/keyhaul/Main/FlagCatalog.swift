import ArgumentParser
import Foundation

/// The flags of all verbs, asked of the argument parser itself.
///
/// Used only where a flag stands before the verb, or is unknown: building it costs more than parsing does.
enum FlagCatalog {
  /// "--home", "-o": every flag that takes a value, of every verb.
  static func valueFlags(of root: any ParsableCommand.Type) -> Set<String> {
    guard let tool = try? JSONDecoder().decode(Tool.self, from: Data(root._dumpHelp().utf8)) else { return [] }
    return tool.command.valueFlags
  }

  /// "--home", "--json": the long flags of one command.
  static func names(of command: any ParsableCommand.Type) -> [String] {
    guard let tool = try? JSONDecoder().decode(Tool.self, from: Data(command._dumpHelp().utf8)) else { return [] }
    return (tool.command.arguments ?? []).flatMap { $0.names ?? [] }.map(\.spelling).filter { $0.hasPrefix("--") }
  }

  /// The verbs that have a long flag, by their words: "inspect", "device create".
  static func verbs(with flag: String, of root: any ParsableCommand.Type) -> [String] {
    guard let tool = try? JSONDecoder().decode(Tool.self, from: Data(root._dumpHelp().utf8)) else { return [] }
    return tool.command.verbs(with: flag, below: [])
  }

  private struct Tool: Decodable {
    let command: Command
  }

  private struct Command: Decodable {
    let commandName: String
    let arguments: [Argument]?
    let subcommands: [Command]?

    func verbs(with flag: String, below words: [String]) -> [String] {
      let own = (arguments ?? []).flatMap { $0.names ?? [] }.contains { $0.spelling == flag }
      let below = subcommands ?? []
      return below.isEmpty
        ? (own ? [words.joined(separator: " ")] : [])
        : below.flatMap { $0.verbs(with: flag, below: words + [$0.commandName]) }
    }

    var valueFlags: Set<String> {
      let own = (arguments ?? []).filter { $0.kind == "option" }.flatMap { $0.names ?? [] }.map(\.spelling)
      return (subcommands ?? []).reduce(into: Set(own)) { $0.formUnion($1.valueFlags) }
    }
  }

  private struct Argument: Decodable {
    let kind: String
    let names: [Name]?
  }

  private struct Name: Decodable {
    let kind: String
    let name: String

    var spelling: String { (kind == "long" ? "--" : "-") + name }
  }
}
