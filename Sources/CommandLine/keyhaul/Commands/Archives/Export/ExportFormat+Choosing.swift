import KeyhaulKit
import Reports

extension ExportFormat {
  /// The format that the user asked for, by `--format` or by the ending of the file's name.
  ///
  /// - Throws: `.usage` for JSON into a file whose name promises another format, and for secrets into one whose name
  ///   promises none.
  static func chosen(
    _ common: CommonOptions, output: String, reveals: Bool
  ) throws(CommandFailure) -> ExportFormat {
    let promised = promised(byName: output)
    if common.json, let format = common.format, format != .json, output == "-" {
      throw .usage(
        "--json and -o - cannot be used together with --format \(format.rawValue)",
        why: "standard output would contain two results", try: "-o FILE, or leave --json out")
    }
    guard common.isJSON, common.format ?? .json == .json else {
      let asked = common.format.flatMap { format in all.first { $0.name == format.rawValue } }
      if let format = asked ?? promised ?? (reveals ? nil : .document) { return format }
      throw .usage(
        "the name \(output) does not determine the format of the secrets",
        why: "it does not end in \(HumanReadable.list(all.map(\.ending), conjunction: "or"))",
        try: "--format \(HumanReadable.list(all.map(\.name), conjunction: "or"))")
    }
    guard promised?.isDocument ?? true else {
      throw .usage(
        "--json and -o \(output) cannot be used together",
        why: "the file would contain JSON, because --json means --format json",
        try: "leave --json out, or use a name that ends in .json")
    }
    return .document
  }

  /// Whether the format that `--format` or the file's name selects is a page.
  static func writesPage(_ common: CommonOptions, output: String) -> Bool {
    let named = common.format.map { format in all.first { $0.name == format.rawValue } } ?? promised(byName: output)
    return named?.ending.hasSuffix(".html") ?? false
  }

  /// The format that the ending of a file name implies, or the default for standard output ("-"), JSON; `nil` if the
  /// ending implies no format.
  private static func promised(byName name: String) -> ExportFormat? {
    if name == "-" { return .document }
    let name = name.lowercased()
    return all.first { name.hasSuffix($0.ending) }
  }

  /// How an item is called that is of its kinds, or of other ones, and is not in it: "of another kind", "no network".
  var otherNoun: String { containsWholeKinds ? "of another kind" : "no \(noun)" }
  /// The same for several.
  var otherNouns: String { containsWholeKinds ? "of other kinds" : "not \(noun)s" }

  /// For help: "json, csv (passwords), otpauth".
  static var list: String {
    HumanReadable.list(all.map { $0.name + ($0.hint.map { " (\($0))" } ?? "") }, conjunction: "or")
  }
}

extension OutputFormat {
  /// The formats of exported items.
  static let exports = ExportFormat.all.compactMap { OutputFormat(rawValue: $0.name) }
}
