import KeyhaulKit

/// Converts messages of the argument parser into errors of this program.
///
/// The parser's errors have no public type, only a text. A message that is not known is kept, starting with a
/// lower-case letter and without its full stop. Tests check every known message with the real parser.
enum ParserMessage {
  /// Returns the error for a message.
  ///
  /// - Parameters:
  ///   - text: The parser's message: "Unknown option '--hom'. Did you mean '--home'?"
  ///   - command: The name of the command: "keyhaul backup".
  ///   - flags: The long flags of the command.
  ///   - formats: The formats that its result has.
  ///   - commands: Returns the other commands that have a flag.
  static func failure(
    _ text: String, command: String, flags: [String], formats: [OutputFormat] = OutputFormat.allCases,
    commands: (_ flag: String) -> [String] = { _ in [] }
  ) -> CommandError {
    let help = "\(command) -h"
    if let match = text.firstMatch(of: /^Unknown option '([^']*)'/) {
      return unknownFlag(String(match.1), flags: flags, command: command, commands: commands)
    }
    if let match = text.firstMatch(of: /^Missing value for '([^' ]*)(?: <([^>]*)>)?'/) {
      return .usage("\(match.1) needs a value", try: match.2.map { "\(match.1) \($0.uppercased())" } ?? help)
    }
    if let match = text.firstMatch(of: /^Missing expected argument '(?:(-[^ ']*) )?<([^>]*)>/) {
      let name = match.2.uppercased()
      let missing = match.1.map { "\($0) \(name)" } ?? name
      return .usage("\(command) needs \(arguments[missing] ?? missing)", try: help)
    }
    if let match = text.firstMatch(of: /(?s)^Unexpected argument '(.*)'$/) {
      if match.1.contains(/^[a-z_]+(,[a-z_]+)+$/) {
        return .usage(
          "\(command) does not accept the argument \"\(match.1)\"", why: "field names follow --json= without a space",
          try: "--json=\(match.1)")
      }
      return tooManyArguments([String(match.1)], flags, command: command)
        ?? .usage("\(command) does not accept the argument \"\(match.1)\"", try: help)
    }
    if let match = text.firstMatch(of: /(?s)^(\d+) unexpected arguments: '(.*)'$/) {
      return tooManyArguments(match.2.split(separator: "', '").map(String.init), flags, command: command)
        ?? .usage(
          "\(command) has too many arguments",
          why: "\(match.1) are too many: \(match.2.replacing("', '", with: ", "))", try: help)
    }
    if let match = text.firstMatch(of: /(?s)^The value '(.*)' is invalid for '(-[^' ]*)[^']*'(.*)$/) {
      let values = match.2 == "--format" ? oneOf(formats.map(\.rawValue)) : possibleValues(String(match.3))
      return .usage("\(match.2) cannot be \"\(match.1)\"", why: values, try: help)
    }
    if let match = text.firstMatch(of: /(?s)^The value '(.*)' is invalid for '<([^>]*)>'(.*)$/) {
      return .usage(
        "\(match.2.uppercased()) cannot be \"\(match.1)\"", why: possibleValues(String(match.3)), try: help)
    }
    if let match = text.firstMatch(of: /(?s)^The option '([^']*)' does not take any value, but '.*' was specified/) {
      return .usage("\(match.1) does not accept a value", try: "\(match.1) alone")
    }
    if let match = text.firstMatch(of: /^Value to be set with flag '([^']*)'.*had already been set with flag '([^']*)'/)
    {
      return .usage("\(match.2) and \(match.1) cannot be used together", try: "use only one of them")
    }
    return .usage(clause(text), try: help)
  }

  /// Returns the error for too many arguments of a command that needs a secret; `nil` if the command needs none. An argument
  /// that is not a file may be the secret, so the message does not repeat it.
  private static func tooManyArguments(_ arguments: [String], _ flags: [String], command: String) -> CommandError? {
    guard let kind = SecretKind.allCases.first(where: { flags.contains("--\($0.flagPrefix)-file") }) else {
      return nil
    }
    let message = "\(command) has too many arguments"
    if let file = arguments.first(where: { (try? FileSystem.real.status(of: $0)) ?? nil != nil }) {
      let comparing = command == "keyhaul diff" ? "" : ", or keyhaul diff A B to compare two backups"
      return .usage(
        message, why: "\"\(UntrustedText.escaped(file))\" is one argument too many",
        try: "run one command for each" + comparing)
    }
    guard flags.contains("--service") else {
      return .usage(message, why: "a \(kind.noun) is never an argument", try: kind.flags)
    }
    return .usage(
      message, why: "flags select the item, and a \(kind.noun) is never an argument",
      try: "--service NAME or --account NAME; for a \(kind.noun) \(kind.flags)")
  }

  private static func unknownFlag(
    _ flag: String, flags: [String], command: String, commands: (String) -> [String]
  ) -> CommandError {
    let message = "\(command) has no flag \(flag)"
    for kind in SecretKind.allCases where flag == "--\(kind.flagPrefix)" {
      return .usage(message, why: "a \(kind.noun) is never an argument", try: kind.flags)
    }
    let renamed = "--new-" + flag.drop { $0 == "-" }
    if flag.hasPrefix("--"), flags.contains(renamed) {
      return .usage(message, why: "the flags --new-... set an item's new values", try: renamed)
    }
    let others = flag.hasPrefix("--") ? commands(flag) : []
    if !others.isEmpty {
      let named = others.count > 4 ? others.prefix(3) + ["\(others.count - 3) other commands"] : others[...]
      return .usage(message, why: "it is a flag of \(HumanReadable.list(Array(named)))", try: "leave \(flag) out")
    }
    if flag.hasPrefix("--"), let near = EditDistance.nearest(to: flag, among: flags) {
      return .usage(message, why: "\(near) is similar", try: near)
    }
    return .usage(message, try: "\(command) -h")
  }

  /// Extracts the allowed values from "Please provide one of 'a', 'b' or 'c'." or its multi-line form. Returns other
  /// text after ": " unchanged.
  private static func possibleValues(_ text: String) -> String? {
    if text.hasPrefix(": ") { return String(text.dropFirst(2)) }
    let quoted = text.matches(of: /'([^']*)'/).map { String($0.1) }
    let listed = text.matches(of: /- (\S+)/).map { String($0.1) }
    let values = quoted.isEmpty ? listed : quoted
    return values.isEmpty ? nil : oneOf(values)
  }

  /// Descriptions of arguments whose names in the usage line are not clear enough.
  private static let arguments = ["SOURCE": "a backup or a device", "ARCHIVE": "a backup", "DEVICE": "a device"]

  private static func oneOf(_ values: [String]) -> String {
    "it must be \(HumanReadable.list(values, conjunction: "or"))"
  }

  /// Returns a message in one line, starting with a lower-case letter and without its full stop.
  private static func clause(_ text: String) -> String {
    let line = text.split(separator: "\n").joined(separator: " ")
    let start = line.prefix(1).lowercased() + line.dropFirst()
    return start.hasSuffix(".") ? String(start.dropLast()) : start
  }
}
