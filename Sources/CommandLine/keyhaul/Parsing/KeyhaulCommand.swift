import ArgumentParser
import KeyhaulKit

/// A command with a help screen and the options of all commands.
protocol KeyhaulCommand: ParsableCommand {
  static var helpScreen: HelpScreen { get }
  var common: CommonOptions { get }
  /// The output formats that the command supports.
  static var formats: [OutputFormat] { get }
  /// Whether `--json` is allowed together with `--format`, which then names the format of a file.
  static var allowsJSONWithFormat: Bool { get }
  /// The options that control messages and the style of the result. They differ from `common` only if `--format` names
  /// the format of a file.
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
    // Without this, the parser takes the command for a root command and reads its arguments twice, looking for a request
    // for a completion script. The only other effect is on the output of `--experimental-dump-help`.
    configuration._superCommandName = "keyhaul"
    return configuration
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
