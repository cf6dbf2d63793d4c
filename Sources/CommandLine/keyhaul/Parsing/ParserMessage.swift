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
  ///   - formats: The output formats that the command supports.
  ///   - commands: Returns the other commands that have a flag.
  static func failure(
    _ text: String, command: String, flags: [String], formats: [OutputFormat] = OutputFormat.allCases,
    commands: (_ flag: String) -> [String] = { _ in [] }
  ) -> CommandError {
    if let match = text.firstMatch(of: /^Unknown option '(?<flag>[^']*)'/) {
      return unknownFlag(String(match.flag), flags: flags, command: command, commands: commands)
    }
    return missing(text, command: command) ?? unexpectedArguments(text, flags: flags, command: command)
      ?? invalidValue(text, formats: formats, command: command) ?? conflictingFlags(text)
      ?? CommandError.usage(clause(text), try: "\(command) -h")
  }

  /// Returns the error for a missing argument or value; `nil` if the message is about something else.
  private static func missing(_ text: String, command: String) -> CommandError? {
    let help = "\(command) -h"
    if let match = text.firstMatch(of: /^Missing value for '(?<flag>[^' ]*)(?: <(?<value>[^>]*)>)?'/) {
      return .usage("\(match.flag) needs a value", try: match.value.map { "\(match.flag) \($0.uppercased())" } ?? help)
    }
    if let match = text.firstMatch(of: /^Missing expected argument '(?:(?<flag>-[^ ']*) )?<(?<name>[^>]*)>/) {
      let name = match.name.uppercased()
      let missingArgument = match.flag.map { "\($0) \(name)" } ?? name
      return .usage("\(command) needs \(argumentDescriptions[missingArgument] ?? missingArgument)", try: help)
    }
    return nil
  }

  /// Returns the error for one or more arguments too many; `nil` if the message is about something else.
  private static func unexpectedArguments(_ text: String, flags: [String], command: String) -> CommandError? {
    let help = "\(command) -h"
    if let match = text.firstMatch(of: /(?s)^Unexpected argument '(?<argument>.*)'$/) {
      let argument = String(match.argument)
      let message = "\(command) does not accept the argument \"\(argument)\""
      if argument.contains(/^[a-z_]+(,[a-z_]+)+$/) {
        return .usage(message, why: "field names follow --json= without a space", try: "--json=\(argument)")
      }
      return tooManyArguments([argument], flags, command: command) ?? CommandError.usage(message, try: help)
    }
    if let match = text.firstMatch(of: /(?s)^(?<count>\d+) unexpected arguments: '(?<arguments>.*)'$/) {
      let arguments = match.arguments.split(separator: "', '").map(String.init)
      return tooManyArguments(arguments, flags, command: command)
        ?? CommandError.usage(
          "\(command) has too many arguments",
          why: "\(match.count) are too many: \(match.arguments.replacing("', '", with: ", "))", try: help)
    }
    return nil
  }

  /// Returns the error for a value that a flag or an argument does not accept; `nil` if the message is about something
  /// else.
  private static func invalidValue(_ text: String, formats: [OutputFormat], command: String) -> CommandError? {
    let help = "\(command) -h"
    if let match = text.firstMatch(
      of: /(?s)^The value '(?<value>.*)' is invalid for '(?<flag>-[^' ]*)[^']*'(?<details>.*)$/)
    {
      let values = match.flag == "--format" ? oneOf(formats.map(\.rawValue)) : possibleValues(String(match.details))
      return .usage("\(match.flag) cannot be \"\(match.value)\"", why: values, try: help)
    }
    if let match = text.firstMatch(
      of: /(?s)^The value '(?<value>.*)' is invalid for '<(?<name>[^>]*)>'(?<details>.*)$/)
    {
      return .usage(
        "\(match.name.uppercased()) cannot be \"\(match.value)\"", why: possibleValues(String(match.details)),
        try: help)
    }
    if let match = text.firstMatch(
      of: /(?s)^The option '(?<flag>[^']*)' does not take any value, but '.*' was specified/)
    {
      return .usage("\(match.flag) does not accept a value", try: "\(match.flag) alone")
    }
    return nil
  }

  /// Returns the error for two flags that exclude each other; `nil` if the message is about something else.
  private static func conflictingFlags(_ text: String) -> CommandError? {
    guard
      let match = text.firstMatch(
        of: /^Value to be set with flag '(?<later>[^']*)'.*had already been set with flag '(?<earlier>[^']*)'/)
    else { return nil }
    return .usage("\(match.earlier) and \(match.later) cannot be used together", try: "use only one of them")
  }

  /// Returns the error for too many arguments of a command that needs a secret; `nil` if the command needs none.
  ///
  /// An argument that is not a file may be the secret, so the message does not repeat it.
  private static func tooManyArguments(_ arguments: [String], _ flags: [String], command: String) -> CommandError? {
    guard let kind = SecretKind.allCases.first(where: { flags.contains("--\($0.flagPrefix)-file") }) else {
      return nil
    }
    let message = "\(command) has too many arguments"
    if let file = arguments.first(where: { (try? FileSystem.real.status(of: $0)) ?? nil != nil }) {
      let diffAdvice = command == "keyhaul diff" ? "" : ", or keyhaul diff A B to compare two backups"
      return .usage(
        message, why: "\"\(UntrustedText.escaped(file))\" is one argument too many",
        try: "run one command for each" + diffAdvice)
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
    guard flag.hasPrefix("--") else { return .usage(message, try: "\(command) -h") }
    let newValueFlag = "--new-" + flag.drop { $0 == "-" }
    if flags.contains(newValueFlag) {
      return .usage(message, why: "the flags --new-... set an item's new values", try: newValueFlag)
    }
    let otherCommands = commands(flag)
    if !otherCommands.isEmpty {
      let examples =
        otherCommands.count > 4
        ? otherCommands.prefix(3) + ["\(otherCommands.count - 3) other commands"] : otherCommands[...]
      return .usage(message, why: "it is a flag of \(HumanReadable.list(Array(examples)))", try: "leave \(flag) out")
    }
    if let similar = EditDistance.nearest(to: flag, among: flags) {
      return .usage(message, why: "\(similar) is similar", try: similar)
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
  private static let argumentDescriptions = [
    "SOURCE": "a backup or a device", "ARCHIVE": "a backup", "DEVICE": "a device",
  ]

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
