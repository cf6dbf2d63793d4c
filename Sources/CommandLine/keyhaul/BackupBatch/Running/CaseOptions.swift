import ArgumentParser
import KeyhaulKit

/// The flags of a case report.
struct CaseOptions: ParsableArguments, Sendable {
  @Option(
    name: .customLong("case"),
    help: ArgumentHelp(
      "Write a case report to the file after -o (.html or .json): what was examined, how, and the findings.",
      valueName: "name"))
  var caseName: String?
  @Option(help: ArgumentHelp("The name of the examiner, for the case report.", valueName: "name"))
  var examiner: String?

  init() {}

  /// The maximum number of characters in a name.
  static let maximumLength = 200

  /// The names and the output file of a case report.
  struct Request: Sendable {
    let name: String
    let examiner: String
    let output: String
    let isPage: Bool
  }

  /// Returns the requested case report.
  ///
  /// - Parameters:
  ///   - output: The value of `-o`.
  ///   - common: The options of all commands.
  ///   - batchOptions: The options for many backups.
  ///   - fields: The value of `--fields`.
  /// - Returns: `nil` if no case report was requested.
  /// - Throws: `.usage` if a part of the request is missing, or for a flag that contradicts it.
  func request(
    output: String?, _ common: CommonOptions, _ batchOptions: BatchOptions, fields: FieldList?
  ) throws(CommandError) -> Request? {
    guard caseName != nil || examiner != nil else { return nil }
    let (name, examiner) = try checkedNames()
    guard let output, output != "-" else {
      throw .usage("a case report needs a file", why: "-o is missing", try: "-o report.html, or -o report.json")
    }
    let isPage = output.lowercased().hasSuffix(".html")
    guard isPage || output.lowercased().hasSuffix(".json") else {
      throw .usage(
        "the name of a case report must end in .html or .json", why: "\(output) has another ending",
        try: "-o report.html, or -o report.json")
    }
    try Self.checkFormat(common, isPage: isPage)
    guard fields == nil else {
      throw .usage(
        "--case and --fields cannot be used together", why: "a case report contains every field",
        try: "leave --fields out")
    }
    guard batchOptions.resume == nil else {
      throw .usage(
        "--case and --resume cannot be used together", why: "a case report describes one run",
        try: "leave --resume out")
    }
    return Request(name: name, examiner: examiner, output: output, isPage: isPage)
  }

  /// Returns the names of the case and the examiner. Rejects a missing, empty or long name.
  private func checkedNames() throws(CommandError) -> (caseName: String, examiner: String) {
    guard let caseName, let examiner else {
      throw .usage(
        "a case report needs --case and --examiner", why: "\(caseName == nil ? "--case" : "--examiner") is missing",
        try: "--case NAME --examiner NAME -o report.html")
    }
    for (flag, name) in [("--case", caseName), ("--examiner", examiner)] {
      guard !name.isEmpty, name.count <= Self.maximumLength else {
        throw .usage(
          "\(flag) needs a name of at most \(Self.maximumLength) characters",
          why: name.isEmpty ? "it is empty" : "it has \(name.count)", try: "\(flag) NAME")
      }
    }
    return (caseName, examiner)
  }

  /// Rejects a format that differs from the ending of the report's file name.
  private static func checkFormat(_ common: CommonOptions, isPage: Bool) throws(CommandError) {
    guard common.format == nil || common.isHTML == isPage, !(common.json && isPage), !common.isCSV, !common.isNDJSON
    else {
      throw .usage(
        "--format and the name of the case report contradict each other", try: "leave --format and --json out")
    }
  }
}
