import ArgumentParser
import KeyhaulKit

extension ColorChoice: KeywordArgument {}

/// The options of all commands.
struct CommonOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Where the virtual devices are stored (default: "
        + "$KEYHAUL_HOME).", valueName: "dir"), completion: .directory)
  var home: String?

  @Flag(help: "Print one JSON document; same as --format json.")
  var json = false

  @Option(help: ArgumentHelp("Output format.", valueName: "format"))
  var format: OutputFormat?

  @Flag(
    name: .shortAndLong,
    help: "Print only results, errors, and warnings about data that was left out or cannot be trusted.")
  var quiet = false

  @Flag(name: .shortAndLong, help: "Show each step; -vv adds bytes, offsets and timings.")
  var verbose: Int

  @Option(help: ArgumentHelp("When to use color.", valueName: "when"))
  var color: ColorChoice = .auto

  @Option(
    help: ArgumentHelp(
      "How long to wait for a device or backup that another process is using, such as 30s or 2m.", valueName: "time"))
  var wait: WaitTime = .defaultTime

  @Flag(help: "Hide the progress line.")
  var noProgress = false

  @Flag(help: "Never ask questions.")
  var noInput = false

  @Flag(
    name: .shortAndLong,
    help: ArgumentHelp(
      "Answer yes to questions about changes and deletions. Keyhaul still asks before it "
        + "accepts damage or starts a slow operation."))
  var yes = false

  init() {}

  var isJSON: Bool { json || format == .json }
  var isCSV: Bool { format == .csv }
  var isNDJSON: Bool { format == .ndjson }
  var isHTML: Bool { format == .html }
  var isJUnit: Bool { format == .junit }

  /// Makes the command write one JSON document and nothing else, without asking, because the document becomes part of a
  /// combined result.
  mutating func limitOutputToDocument() {
    json = true
    format = nil
    quiet = true
    noProgress = true
    noInput = true
  }

  /// The given options that change how detailed a document is.
  var detail: [String] { verbose > 0 ? ["-v"] : [] }

  /// Rejects an output file with an HTML name if the output is not HTML.
  func check(output: String?) throws(CommandError) {
    guard let output, !isHTML else { return }
    let name = output.lowercased()
    guard name.hasSuffix(".html") || name.hasSuffix(".htm") else { return }
    throw .usage(
      "\(output) would not be HTML", why: "only --format html creates a page", try: "--format html, or another name")
  }

  /// Rejects options that contradict each other, and a format that the result does not have.
  ///
  /// - Parameters:
  ///   - formats: The formats that the result has.
  ///   - allowsJSONWithFormat: Whether `--json` may be combined with `--format`. The format then applies to a file,
  ///     and the result is a JSON document about it.
  func check(
    formats: [OutputFormat] = OutputFormat.allCases, allowsJSONWithFormat: Bool = false
  ) throws(CommandError) {
    if let format, !formats.contains(format) {
      let allowedFormats = HumanReadable.list(formats.map(\.rawValue), conjunction: "or")
      throw .usage(
        "the result has no \(format.rawValue) format", why: "it must be \(allowedFormats)",
        try: "--format \(formats.first?.rawValue ?? "text")")
    }
    if json, !allowsJSONWithFormat, let format, format != .json {
      throw .usage("--json and --format \(format.rawValue) cannot be used together", try: "use only one of them")
    }
    if quiet, verbose > 0 {
      throw .usage("--quiet and --verbose cannot be used together", try: "use only one of them")
    }
  }
}
