import ArgumentParser
import KeyhaulKit

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// Which verb the arguments name, and the arguments without its words.
///
/// Flags may stand before the verb; the argument parser takes a command's own flags only after its name.
struct VerbPath {
  /// From the root to the verb, or to as much of it as there is.
  var commands: [any ParsableCommand.Type]
  /// For the verb's own parser: everything but the words that name it, in its order.
  var arguments: [String]

  /// What `-h` and `--help` ask for.
  enum HelpRequest {
    case short
    case full
  }
  var help: HelpRequest?
  var asksForVersion = false

  var verb: any ParsableCommand.Type { commands[commands.count - 1] }
  /// "keyhaul device list"
  var name: String { commands.map { $0.word }.joined(separator: " ") }

  /// What a word that is not a verb may have been meant to be.
  struct Guesses: Sendable {
    /// What other programs call a verb, or what people look for: "decrypt": "export".
    let meanings: [String: String]
    /// The verb that takes a file, for one that stands in a verb's place.
    let verbOfFiles: String
  }

  /// - Throws: `.usage` for a word that is not a verb, with the near one.
  static func resolve(
    _ arguments: [String], root: any ParsableCommand.Type, guesses: Guesses
  ) throws(CommandFailure) -> VerbPath {
    var path = VerbPath(commands: [root], arguments: [])
    var rest: [String] = []
    var index = arguments.startIndex
    var flagsBefore = ValueFlags(root: root)
    while index < arguments.endIndex {
      let argument = arguments[index]
      index += 1
      let below = path.verb.configuration.subcommands
      if argument == "--" || below.isEmpty {
        rest.append(argument)
        rest += arguments[index...]
        break
      }
      if argument.hasPrefix("-"), argument != "-" {
        rest.append(argument)
        if index < arguments.endIndex, flagsBefore.takesValue(argument) {
          rest.append(arguments[index])
          index += 1
        }
        continue
      }
      if argument == "help", path.commands.count == 1 {
        path.help = .full
        continue
      }
      guard let match = below.first(where: { $0.word == argument }) else {
        throw unknown(argument, in: path, root: root, guesses)
      }
      path.commands.append(match)
    }
    path.arguments = rest
    let flags = rest.prefix { $0 != "--" }
    if flags.contains("--help") {
      path.help = .full
    } else if flags.contains(where: asksForShortHelp) {
      path.help = .short
    }
    path.asksForVersion = flags.contains("--version")
    return path
  }

  /// The verb with its arguments, read by its own parser.
  ///
  /// Which verb it is, is known by now. The parser of all verbs would look for it again, and in a debug build it checks
  /// how each command on the way is declared, several times over.
  func parse() throws -> any ParsableCommand {
    let flags = arguments.prefix { $0 != "--" }
    // Of a verb the parser does not look for it (`Verb.described`), of the root it does: it throws the script.
    let script = "--generate-completion-script"
    if flags.contains(where: { $0 == script || $0.hasPrefix(script + "=") }) {
      _ = try commands[0].parseAsRoot(arguments)
    }
    if verb is any NumberVerb.Type {
      let numbers = flags.filter(Self.isNegativeNumber)
      let others = flags.filter { !Self.isNegativeNumber($0) }
      return try verb.parseAsRoot(others + ["--"] + numbers + arguments.dropFirst(flags.count).dropFirst())
    }
    guard verb is any TabularVerb.Type else { return try verb.parseAsRoot(arguments) }
    let named = flags.map { $0.hasPrefix("--json=") ? "--fields=" + $0.dropFirst("--json=".count) : $0 }
    return try verb.parseAsRoot(named + arguments.dropFirst(flags.count))
  }

  private static func isNegativeNumber(_ argument: String) -> Bool {
    argument.count > 1 && argument.first == "-" && argument.dropFirst().allSatisfy { $0.isASCII && $0.isNumber }
  }

  /// Whether the word after a flag that stands before the verb belongs to it.
  ///
  /// The flags of all verbs are asked first: they are the ones that stand there, and asking each verb for its own takes
  /// several times as long as the program needs to start.
  private struct ValueFlags {
    let root: any ParsableCommand.Type
    lazy var common = FlagCatalog.flags(of: CommonOptions.self)
    lazy var all = FlagCatalog.valueFlags(of: root)

    init(root: any ParsableCommand.Type) { self.root = root }

    mutating func takesValue(_ flag: String) -> Bool {
      if flag.contains("=") || ["--help", "-h", "--version"].contains(flag) { return false }
      if let known = common.first(where: { $0.names.contains(flag) }) { return known.value != nil }
      return all.contains(flag)
    }
  }

  /// The failure of a group that stands alone: `keyhaul device`; or of a flag that needs no verb, mistyped.
  var missingVerb: CommandFailure {
    let flags = arguments.prefix { $0 != "--" }.filter { $0.hasPrefix("--") }.map { String($0.prefix { $0 != "=" }) }
    let unknown = flags.first { FlagCatalog.verbs(with: $0, of: commands[0]).isEmpty }
    let needNoVerb = ["--help", "--version"] + FlagCatalog.flags(of: CommonOptions.self).flatMap(\.names)
    if let flag = unknown, let near = EditDistance.nearest(to: flag, among: needNoVerb) {
      return .usage(
        "\(name) has no flag \(UntrustedText.shortened(flag, columns: 40))", why: "\(near) is similar",
        try: "\(name) \(near)")
    }
    let names = verb.configuration.subcommands.map { $0.word }
    return .usage("\(name) needs a command", why: "its commands are \(HumanReadable.list(names))", try: "\(name) -h")
  }

  /// "-h", alone or in a cluster of flags that have no value: "-qh".
  private static func asksForShortHelp(_ argument: String) -> Bool {
    let letters = argument.dropFirst()
    return argument.first == "-" && letters.allSatisfy("hnqvy".contains) && letters.count { $0 == "h" } == 1
  }

  private static func unknown(
    _ word: String, in path: VerbPath, root: any ParsableCommand.Type, _ guesses: Guesses
  ) -> CommandFailure {
    let names = path.verb.configuration.subcommands.map { $0.word }
    let title = UntrustedText.shortened(word, columns: 40)
    let message = "\(path.name) has no command \"\(title)\""
    if guesses.meanings[word.lowercased()] == nil, let near = EditDistance.nearest(to: word, among: names) {
      return .usage(message, try: "\(path.name) \(near)")
    }
    for group in root.configuration.subcommands {
      let below = group.configuration.subcommands.map { $0.word }
      if below.contains(word) {
        return .usage(
          message,
          why: "\"\(word)\" is a command of \(group.word)", try: "\(root.word) \(group.word) \(word)")
      }
    }
    if path.commands.count == 1, let meant = guesses.meanings[word.lowercased()] {
      return .usage(message, why: "\"\(meant)\" does that", try: "\(path.name) \(meant)")
    }
    if path.commands.count == 1, FileManager.default.fileExists(atPath: word) {
      return .usage(
        message,
        why: "it is a file in this folder", try: "\(root.word) \(guesses.verbOfFiles) \(ShellQuoting.quote(word))")
    }
    return .usage(message, why: "its commands are \(HumanReadable.list(names))", try: "\(path.name) -h")
  }
}
