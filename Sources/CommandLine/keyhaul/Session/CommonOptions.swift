import ArgumentParser
import KeyhaulKit
import Reports

/// What `--format` may be. Each command accepts some of them.
struct OutputFormat: WordArgument, Equatable {
  let rawValue: String

  static let text = OutputFormat("text")
  static let json = OutputFormat("json")
  /// A document on each line, for a call about many backups.
  static let ndjson = OutputFormat("ndjson")
  static let csv = OutputFormat("csv")
  /// One self-contained page.
  static let html = OutputFormat("html")
  /// Results of tests, as systems for continuous integration read them.
  static let junit = OutputFormat("junit")

  private static let reports = [text, json, ndjson, csv, html, junit]
  /// Those of reports, then those that exist only for exported items.
  static let allCases = reports + ExportFormat.all.map { OutputFormat($0.name) }.filter { !reports.contains($0) }

  private init(_ name: String) { rawValue = name }

  init?(rawValue: String) {
    guard let known = Self.allCases.first(where: { $0.rawValue == rawValue }) else { return nil }
    self = known
  }
}

extension ColorChoice: WordArgument {}

/// The flags of all verbs.
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
  var wait: WaitTime = .none

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

  /// Makes the result a document, and leaves all else unsaid and unasked: one answer of many.
  mutating func askNothing() {
    (json, format, quiet, noProgress, noInput) = (true, nil, true, true, true)
  }

  /// What of them shapes a document: how much of it is shown.
  var detail: [String] { verbose > 0 ? ["-v"] : [] }

  /// Refuses a file whose name promises a page that it would not hold.
  func check(output: String?) throws(CommandFailure) {
    guard let output, !isHTML else { return }
    let name = output.lowercased()
    guard name.hasSuffix(".html") || name.hasSuffix(".htm") else { return }
    throw .usage(
      "\(output) would not be HTML", why: "only --format html creates a page", try: "--format html, or another name")
  }

  /// What cannot be meant together, and a form that the verb's result does not have.
  ///
  /// - Parameter answersBeside: Whether `--json` may stand beside a format: that is the file's, the answer is a document.
  func check(
    formats: [OutputFormat] = OutputFormat.allCases, answersBeside: Bool = false
  ) throws(CommandFailure) {
    if let format, !formats.contains(format) {
      let known = HumanReadable.list(formats.map(\.rawValue), conjunction: "or")
      throw .usage(
        "the result has no \(format.rawValue) format", why: "it must be \(known)",
        try: "--format \(formats.first?.rawValue ?? "text")")
    }
    if json, !answersBeside, let format, format != .json {
      throw .usage("--json and --format \(format.rawValue) cannot be used together", try: "use only one of them")
    }
    if quiet, verbose > 0 {
      throw .usage("--quiet and --verbose cannot be used together", try: "use only one of them")
    }
  }
}

/// An argument that is one of a few words.
///
/// The parser would find out about the words with key paths, which a short command notices at its start.
protocol WordArgument: ExpressibleByArgument, CaseIterable, RawRepresentable<String> {}

extension WordArgument {
  static var allValueStrings: [String] { allCases.map { $0.rawValue } }
  /// None: the words say it.
  static var allValueDescriptions: [String: String] { [:] }
}
