import ArgumentParser
import KeyhaulKit

/// A verb of the command line: its options, and its short help.
protocol Verb: ParsableCommand {
  static var screen: HelpScreen { get }
  var common: CommonOptions { get }
  /// The forms that its result has.
  static var formats: [OutputFormat] { get }
  /// Whether `--format` may say what a file is written as, and `--json` beside it asks for a document about that.
  static var answersBesideFiles: Bool { get }
  /// The options that decide how messages and the result look.
  var messageOptions: CommonOptions { get }
}

extension Verb {
  static var formats: [OutputFormat] { [.text, .json] }
  static var answersBesideFiles: Bool { false }
  var messageOptions: CommonOptions { common }
}

/// A verb that can be run, and so can stand in the root command's list.
protocol RunnableVerb: Verb {
  /// Does the work.
  ///
  /// - Returns: How it ended, where it did end; what stopped it is thrown (`CommandFailure`, or an `ExplainedError`).
  func perform(in session: Session) throws -> CommandStatus
}

/// A verb whose argument can be a negative number, such as -25300, which the argument parser would read as flags.
protocol NumberVerb: RunnableVerb {}

/// A word that has verbs below it: `device`, `item`.
protocol VerbGroup: ParsableCommand {}

extension ParsableCommand {
  /// What the user types for it.
  static var word: String { configuration.commandName ?? "" }
}

extension Verb {
  /// The configuration that the argument parser wants, from the screen.
  static func described(as name: String) -> CommandConfiguration {
    var configuration = CommandConfiguration(
      commandName: name, abstract: screen.sentence, usage: screen.usage,
      discussion: screen.examples.isEmpty
        ? "" : "Examples:\n" + screen.examples.map { "  " + $0 }.joined(separator: "\n"),
      helpNames: .long)
    // Says that it is no program of its own: only of such a one the parser looks for a request for a completion script
    // first, and reads the arguments twice for that. As each verb has a usage, it is seen in what
    // `VERB --experimental-dump-help` says of `help` alone.
    configuration._superCommandName = "keyhaul"
    return configuration
  }
}

/// The flags that decide about the form of an error, found without the parser: it may be the parser's error.
enum UnparsedFlags {
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

/// A verb whose result can be rows of chosen fields.
protocol TabularVerb: RunnableVerb {
  var common: CommonOptions { get set }
  var chosen: FieldOptions { get }
}

extension TabularVerb {
  /// The verb as it is run: fields are those of a document.
  func printingChosenFields() throws(CommandFailure) -> Self {
    guard chosen.fields != nil else { return self }
    if let format = common.format, format != .json {
      throw .usage("--fields and --format \(format.rawValue) cannot be used together", try: "use only one of them")
    }
    var verb = self
    verb.common.json = true
    return verb
  }
}

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
