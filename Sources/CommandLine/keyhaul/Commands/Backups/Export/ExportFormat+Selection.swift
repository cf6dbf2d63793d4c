import KeyhaulKit
import Reports

extension ExportFormat {
  /// Returns the format that `--format` or the file's extension selects.
  ///
  /// - Parameter reveals: Whether secrets are exported. If so, the format must be stated; otherwise it may default to
  ///   JSON.
  /// - Throws: `.usage` if JSON would be written to a file with the extension of another format, if standard output would
  ///   contain two results, or if secrets are exported and nothing selects the format.
  static func chosen(
    _ common: CommonOptions, output: String, reveals: Bool
  ) throws(CommandError) -> ExportFormat {
    let formatOfName = impliedFormat(byName: output)
    if common.json, let format = common.format, format != .json, output == "-" {
      throw .usage(
        "--json and -o - cannot be used together with --format \(format.rawValue)",
        why: "standard output would contain two results", try: "-o FILE, or leave --json out")
    }
    let requestsJSON = common.isJSON && common.format ?? .json == .json
    if requestsJSON {
      guard formatOfName?.isDocument ?? true else {
        throw .usage(
          "--json and -o \(output) cannot be used together",
          why: "the file would contain JSON, because --json means --format json",
          try: "leave --json out, or use a name that ends in .json")
      }
      return .document
    }
    let requestedFormat = common.format.flatMap { format in all.first { $0.name == format.rawValue } }
    if let format = requestedFormat ?? formatOfName ?? (reveals ? nil : .document) { return format }
    throw .usage(
      "the name \(output) does not determine the format of the secrets",
      why: "it does not end in \(HumanReadable.list(all.map(\.ending), conjunction: "or"))",
      try: "--format \(HumanReadable.list(all.map(\.name), conjunction: "or"))")
  }

  /// Returns whether the selected format is an HTML page.
  static func writesPage(_ common: CommonOptions, output: String) -> Bool {
    let format =
      common.format.map { format in all.first { $0.name == format.rawValue } } ?? impliedFormat(byName: output)
    return format?.ending.hasSuffix(".html") ?? false
  }

  /// Returns the format that a file's extension implies, or JSON for standard output ("-"); `nil` if the extension implies
  /// no format.
  private static func impliedFormat(byName name: String) -> ExportFormat? {
    if name == "-" { return .document }
    let name = name.lowercased()
    return all.first { name.hasSuffix($0.ending) }
  }

  /// A description of an item that the format does not contain: "of another kind", "no network".
  var otherItemText: String { containsWholeKinds ? "of another kind" : "no \(noun)" }
  /// The description for several items.
  var otherItemsText: String { containsWholeKinds ? "of other kinds" : "not \(noun)s" }

  /// The formats for the help: "json, csv (passwords), otpauth".
  static var helpList: String {
    HumanReadable.list(all.map { $0.name + ($0.hint.map { " (\($0))" } ?? "") }, conjunction: "or")
  }
}

extension OutputFormat {
  /// The formats of exported items.
  static let exports = ExportFormat.all.compactMap { OutputFormat(rawValue: $0.name) }
}
