import ArgumentParser
import KeyhaulKit

/// The forms that every verb's result has.
enum OutputFormat: String, WordArgument {
  case text
  case json
  /// A document on each line, of a call about many backups.
  case ndjson
  case csv
  /// One self-contained page.
  case html
  /// Results of tests, as systems for continuous integration read them.
  case junit
  /// Secrets of one-time passwords, an address on each line.
  case otpauth
  /// Certificates and keys.
  case pem
  /// Wi-Fi networks and their passwords.
  case wifi
  /// Generic passwords, as forensic tools take a keychain.
  case genpPlist = "genp-plist"
  /// Logins, as password managers exchange them.
  case cxf
}

extension ColorChoice: WordArgument {}

/// The flags of all verbs.
struct CommonOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Where the virtual devices are kept (default: "
        + "$KEYHAUL_HOME).", valueName: "dir"), completion: .directory)
  var home: String?

  @Flag(help: "Print one JSON document; same as --format json.")
  var json = false

  @Option(help: ArgumentHelp("Output format.", valueName: "format"))
  var format: OutputFormat?

  @Flag(name: .shortAndLong, help: "Print only results and errors.")
  var quiet = false

  @Flag(name: .shortAndLong, help: "Show each step; -vv adds bytes, offsets and timings.")
  var verbose: Int

  @Option(help: ArgumentHelp("When to use color.", valueName: "when"))
  var color: ColorChoice = .auto

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
      "\(output) would not be a page", why: "only --format html creates a page", try: "--format html, or another name")
  }

  /// What cannot be meant together, and a form that the verb's result does not have.
  ///
  /// - Parameter answersBeside: Whether `--json` may stand beside a format: that is the file's, the answer is a document.
  func check(
    formats: [OutputFormat] = OutputFormat.allCases, answersBeside: Bool = false
  ) throws(CommandFailure) {
    if let format, !formats.contains(format) {
      let known = Amounts.list(formats.map(\.rawValue), conjunction: "or")
      throw .usage(
        "the result has no \(format.rawValue) format", why: "it is \(known)",
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
