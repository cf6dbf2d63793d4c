import ArgumentParser
import KeyhaulKit

/// The short help of a verb, for `-h`: a sentence, two examples, the common flags. `--help` says everything.
struct HelpScreen: Sendable {
  /// A row about flags. What a flag does is said by its own help, unless the row has words about this verb.
  struct Row: Sendable, ExpressibleByStringLiteral {
    /// A flag, "--to"; or several that are told of together: "--account, --service, --server".
    let flags: String
    let words: String?

    /// - Parameter words: What its own help cannot say: what a flag of all verbs does here, or what several are for.
    init(_ flags: String, _ words: String? = nil) {
      self.flags = flags
      self.words = words
    }

    init(stringLiteral flag: String) { self.init(flag) }
  }

  /// One line, capital first, no full stop: "Back up a device's keychain".
  let sentence: String
  /// "keyhaul backup DEVICE -o ARCHIVE [--no-password]"
  let usage: String
  let examples: [String]
  /// The flags worth knowing first.
  let flags: [Row]

  /// More rows than this would not be one screen.
  static let maximumLineCount = 24

  /// - Parameter verb: The verb that has the flags.
  func lines(of verb: any Verb.Type, style: TextStyle) -> [String] {
    let name = usage.split(separator: " ").prefix { $0.allSatisfy { $0.isLowercase } }.joined(separator: " ")
    var lines = [style.painted(sentence + ".", .bold), ""]
    lines += WordWrap.labeled("usage     ", usage, columns: style.width)
    for (index, example) in examples.enumerated() {
      lines.append((index == 0 ? "examples  " : "          ") + example)
    }
    let rows = flags.isEmpty ? [] : rows(of: verb)
    if !rows.isEmpty { lines.append("") }
    let widest = rows.map { DisplayWidth.columns(of: $0.label) }.max() ?? 0
    for (label, meaning) in rows {
      lines += WordWrap.labeled(
        "  " + DisplayWidth.padded(label, columns: widest) + "  ", meaning, columns: style.width)
    }
    return (lines + ["", "\"\(name) --help\" lists everything."]).map(style.adapted)
  }

  /// The rows as they are shown: "-o, --output FILE" and what it does.
  private func rows(of verb: any Verb.Type) -> [(label: String, meaning: String)] {
    let known = FlagCatalog.flags(of: verb)
    let names = Set(known.flatMap(\.names))
    return flags.map { row in
      guard let flag = known.first(where: { $0.names.contains(row.flags) }) else { return (row.flags, row.words ?? "") }
      let meaning = row.words ?? (row.flags == "--format" ? verb.formatSummary : flag.summary)
      return (flag.label, ([meaning] + flag.siblings(among: names)).joined(separator: "; also "))
    }
  }
}

extension FlagHelp {
  /// "--to DEVICE"; the short name first.
  fileprivate var label: String {
    names.sorted { $0.utf8.count < $1.utf8.count }.joined(separator: ", ") + (value.map { " " + $0.uppercased() } ?? "")
  }

  /// What a row has room for: the help's text up to its first semicolon or full stop, as a part of a sentence.
  fileprivate var summary: String {
    let first = text.prefix(upTo: text.firstRange(of: /; |\. |\.$/)?.lowerBound ?? text.endIndex)
    return first.prefix(1).lowercased() + first.dropFirst()
  }

  /// "-fd, -command": the other ways to give what this flag takes from a file.
  fileprivate func siblings(among known: Set<String>) -> [String] {
    guard let long = names.first(where: { $0.hasSuffix("-file") }) else { return [] }
    let endings = ["-fd", "-command"].filter { known.contains(long.dropLast("-file".count) + $0) }
    return endings.isEmpty ? [] : [endings.joined(separator: ", ")]
  }
}

extension Verb {
  /// The forms of the verb's own result: the flag itself is of all verbs.
  fileprivate static var formatSummary: String {
    "output format: \(HumanReadable.list(formats.map(\.rawValue), conjunction: "or"))"
  }
}

/// The short help of a group: its verbs.
enum GroupHelp {
  static func lines(_ path: VerbPath, style: TextStyle) -> [String] {
    let configuration = path.verb.configuration
    let verbs = configuration.subcommands.map {
      ($0.word, $0.configuration.abstract)
    }
    let widest = verbs.map(\.0.count).max() ?? 0
    return [
      style.painted(configuration.abstract + ".", .bold), "", "usage     \(path.name) <command> [arguments] [flags]",
      "",
    ]
      + verbs.map { "  " + DisplayWidth.padded($0.0, columns: widest) + "  " + $0.1 }
      + ["", "\"\(path.name) <command> -h\" describes a command."]
  }
}

extension ParsableCommand {
  /// Everything that the parser says of a command; of the forms of a result, which it knows as a flag of all verbs, those
  /// that this verb's has.
  ///
  /// - Parameter root: The command that it is a verb of.
  static func fullHelp(below root: any ParsableCommand.Type, columns: Int) -> String {
    let text = root.helpMessage(for: self, columns: columns)
    guard let verb = self as? any Verb.Type else { return text }
    let forms = verb.formats.map(\.rawValue).joined(separator: ", ")
    // The parser's column of descriptions.
    let indent = String(repeating: " ", count: 26)
    let lines = WordWrap.lines(of: "Output format. (values: \(forms))", columns: columns - indent.count)
    return text.replacing(
      /Output format\.\s+\(values:[^)]*\)/, with: lines.joined(separator: "\n" + indent))
  }
}
