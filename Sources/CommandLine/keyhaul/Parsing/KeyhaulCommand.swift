import ArgumentParser
import KeyhaulKit

/// A command with a help screen and the options of all commands.
protocol KeyhaulCommand: ParsableCommand {
  static var helpScreen: HelpScreen { get }
  var common: CommonOptions { get }
  /// The formats that its result has.
  static var formats: [OutputFormat] { get }
  /// Whether `--format` may name the format of a file while `--json` asks for a document about it.
  static var allowsJSONWithFormat: Bool { get }
  /// The options that control messages and the style of the result.
  var messageOptions: CommonOptions { get }
}

extension KeyhaulCommand {
  static var formats: [OutputFormat] { [.text, .json] }
  static var allowsJSONWithFormat: Bool { false }
  var messageOptions: CommonOptions { common }
}

/// A command that can run, and so can be listed in the root command.
protocol RunnableCommand: KeyhaulCommand {
  /// Runs the command.
  ///
  /// - Returns: The exit status.
  /// - Throws: A `CommandError` or an `ExplainedError` if it could not finish.
  func run(in session: Session) throws -> CommandExitStatus
}

/// A command whose argument may be a negative number, such as -25300, which the argument parser would read as flags.
protocol NumericArgumentCommand: RunnableCommand {}

/// A command that only groups subcommands, such as `device`.
protocol GroupCommand: ParsableCommand {}

extension ParsableCommand {
  /// The name that the user types.
  static var commandName: String { configuration.commandName ?? "" }
}

extension KeyhaulCommand {
  /// Returns the argument parser's configuration, built from the help screen.
  static func makeConfiguration(named name: String) -> CommandConfiguration {
    var configuration = CommandConfiguration(
      commandName: name, abstract: helpScreen.sentence, usage: helpScreen.usage,
      discussion: helpScreen.examples.isEmpty
        ? "" : "Examples:\n" + helpScreen.examples.map { "  " + $0 }.joined(separator: "\n"),
      helpNames: .long)
    // Marks the command as a subcommand. For a root command, the parser would first look for a request for a completion
    // script and read the arguments twice. Only `--experimental-dump-help` shows the difference.
    configuration._superCommandName = "keyhaul"
    return configuration
  }
}

/// Flags that change the form of an error, found without the parser, which may be the source of the error.
enum EarlyFlags {
  static func wantsJSON(_ arguments: ArraySlice<String>) -> Bool {
    arguments.contains { $0 == "--json" || $0 == "--fields" || $0.hasPrefix("--json=") || $0.hasPrefix("--fields=") }
      || arguments.contains("--format=json") || value(of: "--format", in: arguments) == "json"
  }

  static func color(_ arguments: ArraySlice<String>) -> ColorChoice {
    let joined = arguments.last { $0.hasPrefix("--color=") }.map { String($0.dropFirst("--color=".count)) }
    return (joined ?? value(of: "--color", in: arguments)).flatMap { ColorChoice(rawValue: $0) } ?? .auto
  }

  private static func value(of flag: String, in arguments: ArraySlice<String>) -> String? {
    guard let index = arguments.lastIndex(of: flag), index + 1 < arguments.endIndex else { return nil }
    return arguments[index + 1]
  }
}

/// A command whose result can be rows with chosen fields.
protocol TabularCommand: RunnableCommand {
  var common: CommonOptions { get set }
  var fieldOptions: FieldOptions { get }
}

extension TabularCommand {
  /// Returns the command with JSON output if the user chose fields.
  func printingChosenFields() throws(CommandError) -> Self {
    guard fieldOptions.fields != nil else { return self }
    if let format = common.format, format != .json {
      throw .usage("--fields and --format \(format.rawValue) cannot be used together", try: "use only one of them")
    }
    var command = self
    command.common.json = true
    return command
  }
}

/// The description of a flag by the argument parser.
struct FlagHelp {
  /// The names: "--output", "-o".
  let names: [String]
  /// The name of the value: "file"; `nil` if the flag has no value.
  let value: String?
  /// The text of the full help.
  let text: String
}

/// The flags of all commands, according to the argument parser.
///
/// Building the catalog takes longer than parsing, so it is used only for help, for flags before the command, and for
/// unknown flags.
enum FlagCatalog {
  /// Returns all flags of all commands that have a value: "--home", "-o".
  static func valueFlags(of root: any ParsableCommand.Type) -> Set<String> {
    Set(commands(below: root).flatMap(\.flags).filter { $0.value != nil }.flatMap(\.names))
  }

  /// Returns the long flags of one command: "--home", "--json".
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
    guard let dump = try? JSONValue(parsing: Array(root._dumpHelp().utf8)), let top = dump["command"] else { return [] }
    return commands(top, path: [])
  }

  private static func commands(_ dump: JSONValue, path: [String]) -> [Command] {
    let subcommands = dump["subcommands"]?.arrayValue ?? []
    let command = Command(
      path: path, isLeaf: subcommands.isEmpty, flags: (dump["arguments"]?.arrayValue ?? []).compactMap(flag))
    return [command] + subcommands.flatMap { commands($0, path: path + [$0["commandName"]?.stringValue ?? ""]) }
  }

  private static func flag(_ argument: JSONValue) -> FlagHelp? {
    guard let names = argument["names"]?.arrayValue, !names.isEmpty else { return nil }
    return FlagHelp(
      names: names.map { ($0["kind"]?.stringValue == "long" ? "--" : "-") + ($0["name"]?.stringValue ?? "") },
      value: argument["kind"]?.stringValue == "option" ? argument["valueName"]?.stringValue : nil,
      text: argument["abstract"]?.stringValue ?? "")
  }
}
