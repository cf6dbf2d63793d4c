import ArgumentParser
import KeyhaulKit

/// The short help of a command, for `-h`: a sentence, examples, and the most useful flags. `--help` shows everything.
struct HelpScreen: Sendable {
  /// A row about one or more flags. Unless it has its own text, it shows the help of the flag.
  struct Row: Sendable, ExpressibleByStringLiteral {
    /// A flag such as "--to", or several: "--account, --service, --server".
    let flags: String
    let text: String?

    /// Creates a row.
    ///
    /// - Parameter text: A text to show instead of the flag's own help.
    init(_ flags: String, _ text: String? = nil) {
      self.flags = flags
      self.text = text
    }

    init(stringLiteral flag: String) { self.init(flag) }
  }

  /// A sentence with a capital letter and without a full stop: "Back up a device's keychain".
  let sentence: String
  /// The usage line: "keyhaul backup DEVICE -o ARCHIVE [--no-password]".
  let usage: String
  let examples: [String]
  /// The most useful flags.
  let flags: [Row]

  /// The maximum number of lines, so that the help fits on one screen.
  static let maximumLineCount = 24

  /// Returns the lines of the help screen.
  ///
  /// - Parameter command: The command whose flags are shown.
  func lines(of command: any KeyhaulCommand.Type, style: TextStyle) -> [String] {
    // The usage line begins with the name, in lower case: "keyhaul device list NAME".
    let name = usage.split(separator: " ").prefix { $0.allSatisfy { $0.isLowercase } }.joined(separator: " ")
    var lines = [style.painted(sentence + ".", .bold), ""]
    lines += WordWrap.labeled("usage     ", usage, columns: style.width)
    for (index, example) in examples.enumerated() {
      lines.append((index == 0 ? "examples  " : "          ") + example)
    }
    let rows = flags.isEmpty ? [] : rows(of: command)
    if !rows.isEmpty { lines.append("") }
    let labelWidth = rows.map { DisplayWidth.columns(of: $0.label) }.max() ?? 0
    for (label, meaning) in rows {
      lines += WordWrap.labeled(
        "  " + DisplayWidth.padded(label, columns: labelWidth) + "  ", meaning, columns: style.width)
    }
    return (lines + ["", "\"\(name) --help\" lists everything."]).map(style.adapted)
  }

  /// Returns the rows to show: "-o, --output FILE" and its meaning.
  private func rows(of command: any KeyhaulCommand.Type) -> [(label: String, meaning: String)] {
    let commandFlags = FlagCatalog.flags(of: command)
    let names = Set(commandFlags.flatMap(\.names))
    return flags.map { row in
      guard let flag = commandFlags.first(where: { $0.names.contains(row.flags) }) else {
        return (row.flags, row.text ?? "")
      }
      let meaning = row.text ?? (row.flags == "--format" ? command.formatSummary : flag.summary)
      return (flag.label, ([meaning] + flag.siblings(among: names)).joined(separator: "; also "))
    }
  }
}

extension FlagHelp {
  /// The names of the flag, the short one first, and its value: "--to DEVICE".
  fileprivate var label: String {
    names.sorted { $0.utf8.count < $1.utf8.count }.joined(separator: ", ")
      + (valueName.map { " " + $0.uppercased() } ?? "")
  }

  /// The first part of the help, up to a semicolon or full stop, starting with a lower-case letter.
  fileprivate var summary: String {
    let end = text.firstRange(of: /; |\. |\.$/)?.lowerBound ?? text.endIndex
    let firstPart = text[..<end]
    return firstPart.prefix(1).lowercased() + firstPart.dropFirst()
  }

  /// Returns the endings of the flags that give the same value in another way: "-fd, -command"; empty if there are none.
  fileprivate func siblings(among flags: Set<String>) -> [String] {
    guard let fileFlag = names.first(where: { $0.hasSuffix("-file") }) else { return [] }
    let prefix = fileFlag.dropLast("-file".count)
    let endings = ["-fd", "-command"].filter { flags.contains(prefix + $0) }
    return endings.isEmpty ? [] : [endings.joined(separator: ", ")]
  }
}

extension KeyhaulCommand {
  /// A description of the output formats that this command supports.
  fileprivate static var formatSummary: String {
    "output format: \(HumanReadable.list(formats.map(\.rawValue), conjunction: "or"))"
  }
}

/// The short help of a group: a list of its commands.
enum GroupHelp {
  static func lines(_ path: CommandPath, style: TextStyle) -> [String] {
    let configuration = path.command.configuration
    let commands = configuration.subcommands.map {
      (name: $0.commandName, sentence: $0.configuration.abstract)
    }
    let nameWidth = commands.map(\.name.count).max() ?? 0
    return [
      style.painted(configuration.abstract + ".", .bold), "", "usage     \(path.name) <command> [arguments] [flags]",
      "",
    ]
      + commands.map { "  " + DisplayWidth.padded($0.name, columns: nameWidth) + "  " + $0.sentence }
      + ["", "\"\(path.name) <command> -h\" describes a command."]
  }
}

extension ParsableCommand {
  /// Returns the full help of a command, listing only the output formats that the command supports.
  ///
  /// - Parameters:
  ///   - root: The root command.
  ///   - columns: The width in columns.
  static func fullHelp(below root: any ParsableCommand.Type, columns: Int) -> String {
    let text = root.helpMessage(for: self, columns: columns)
    guard let command = self as? any KeyhaulCommand.Type else { return text }
    let formats = command.formats.map(\.rawValue).joined(separator: ", ")
    // The parser places descriptions in column 26.
    let indent = String(repeating: " ", count: 26)
    let lines = WordWrap.lines(of: "Output format. (values: \(formats))", columns: columns - indent.count)
    return text.replacing(
      /Output format\.\s+\(values:[^)]*\)/, with: lines.joined(separator: "\n" + indent))
  }
}
