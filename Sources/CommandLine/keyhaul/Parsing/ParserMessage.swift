import KeyhaulKit

/// Turns what the argument parser says into our own form of error.
///
/// Its errors have no public type, only a text; a text that is not known here is passed on as it is, in our case and
/// without its full stop. Tests run every form through the real parser.
enum ParserMessage {
  /// - Parameters:
  ///   - text: The parser's message: "Unknown option '--hom'. Did you mean '--home'?"
  ///   - command: "keyhaul backup"
  ///   - flags: The long flags that the command has.
  ///   - formats: The forms that its result has.
  ///   - verbs: Those that have a flag which this one has not.
  static func failure(
    _ text: String, command: String, flags: [String], formats: [OutputFormat] = OutputFormat.allCases,
    verbs: (_ flag: String) -> [String] = { _ in [] }
  ) -> CommandFailure {
    let help = "\(command) -h"
    if let match = text.firstMatch(of: /^Unknown option '([^']*)'/) {
      return unknownFlag(String(match.1), flags: flags, command: command, verbs: verbs)
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
      return tooMany([String(match.1)], flags, command: command)
        ?? .usage("\(command) does not accept the argument \"\(match.1)\"", try: help)
    }
    if let match = text.firstMatch(of: /(?s)^(\d+) unexpected arguments: '(.*)'$/) {
      return tooMany(match.2.split(separator: "', '").map(String.init), flags, command: command)
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
    return .usage(plain(text), try: help)
  }

  /// Arguments too many for a verb that asks for a secret. One that is not a file may be that secret, and is not repeated.
  private static func tooMany(_ arguments: [String], _ flags: [String], command: String) -> CommandFailure? {
    guard let family = SecretFamily.allCases.first(where: { flags.contains("--\($0.flagPrefix)-file") }) else {
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
      return .usage(message, why: "a \(family.noun) is never an argument", try: family.flags)
    }
    return .usage(
      message, why: "flags select the item, and a \(family.noun) is never an argument",
      try: "--service NAME or --account NAME; for a \(family.noun) \(family.flags)")
  }

  private static func unknownFlag(
    _ flag: String, flags: [String], command: String, verbs: (String) -> [String]
  ) -> CommandFailure {
    let message = "\(command) has no flag \(flag)"
    for family in SecretFamily.allCases where flag == "--\(family.flagPrefix)" {
      return .usage(message, why: "a \(family.noun) is never an argument", try: family.flags)
    }
    let renamed = "--new-" + flag.drop { $0 == "-" }
    if flag.hasPrefix("--"), flags.contains(renamed) {
      return .usage(message, why: "the flags --new-... set an item's new values", try: renamed)
    }
    let others = flag.hasPrefix("--") ? verbs(flag) : []
    if !others.isEmpty {
      let named = others.count > 4 ? others.prefix(3) + ["\(others.count - 3) other commands"] : others[...]
      return .usage(message, why: "it is a flag of \(HumanReadable.list(Array(named)))", try: "leave \(flag) out")
    }
    if flag.hasPrefix("--"), let near = EditDistance.nearest(to: flag, among: flags) {
      return .usage(message, why: "\(near) is similar", try: near)
    }
    return .usage(message, try: "\(command) -h")
  }

  /// "Please provide one of 'a', 'b' or 'c'." and its form of several lines; or ": " and what the flag itself says.
  private static func possibleValues(_ text: String) -> String? {
    if text.hasPrefix(": ") { return String(text.dropFirst(2)) }
    let quoted = text.matches(of: /'([^']*)'/).map { String($0.1) }
    let listed = text.matches(of: /- (\S+)/).map { String($0.1) }
    let values = quoted.isEmpty ? listed : quoted
    return values.isEmpty ? nil : oneOf(values)
  }

  /// What an argument is, for those whose name in the usage does not say it.
  private static let arguments = ["SOURCE": "a backup or a device", "ARCHIVE": "a backup", "DEVICE": "a device"]

  private static func oneOf(_ values: [String]) -> String {
    "it must be \(HumanReadable.list(values, conjunction: "or"))"
  }

  private static func plain(_ text: String) -> String {
    let line = text.split(separator: "\n").joined(separator: " ")
    let start = line.prefix(1).lowercased() + line.dropFirst()
    return start.hasSuffix(".") ? String(start.dropLast()) : start
  }
}
