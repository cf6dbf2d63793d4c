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
}

extension Verb {
  static var formats: [OutputFormat] { [.text, .json] }
  static var answersBesideFiles: Bool { false }
}

/// A verb that can be run, and so can stand in the root command's list.
protocol RunnableVerb: Verb {
  /// Does the work.
  ///
  /// - Returns: How it ended, where it did end; what stopped it is thrown (`CommandFailure`, or an `ExplainedError`).
  func perform(in session: Session) throws -> CommandStatus
}

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
