import ArgumentParser

/// The forms that every verb's result has.
enum OutputFormat: String, CaseIterable, ExpressibleByArgument {
  case text
  case json
}

extension ColourChoice: ExpressibleByArgument {}

/// The flags of all verbs.
struct CommonOptions: ParsableArguments {
  @Option(help: ArgumentHelp("Where virtual devices live (KEYHAUL_HOME).", valueName: "dir"), completion: .directory)
  var home: String?

  @Flag(help: "Print one JSON document; the same as --format json.")
  var json = false

  @Option(help: ArgumentHelp("How to print the result.", valueName: "format"))
  var format: OutputFormat?

  @Flag(name: .shortAndLong, help: "Print only results and errors.")
  var quiet = false

  @Flag(name: .shortAndLong, help: "Print each step; twice for bytes, offsets and timings.")
  var verbose: Int

  @Option(help: ArgumentHelp("When to use colours.", valueName: "when"))
  var color: ColourChoice = .auto

  @Flag(help: "Show no progress line.")
  var noProgress = false

  @Flag(help: "Never ask anything.")
  var noInput = false

  @Flag(name: .shortAndLong, help: "Answer yes to every question.")
  var yes = false

  var isJSON: Bool { json || format == .json }

  /// What cannot be meant together.
  func check() throws(CommandFailure) {
    if json, format == .text {
      throw .usage("--json and --format text cannot go together", try: "one of them")
    }
    if quiet, verbose > 0 {
      throw .usage("--quiet and --verbose cannot go together", try: "one of them")
    }
  }
}
