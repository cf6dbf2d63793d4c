import ArgumentParser

/// The command that the arguments name, and the arguments without its name.
///
/// Flags may precede the command, but the argument parser accepts a command's own flags only after its name.
struct CommandPath {
  /// The commands from the root to the one that was named.
  var commands: [any ParsableCommand.Type]
  /// The arguments for the command's own parser: all except its name, in order.
  var arguments: [String]

  /// The help that the user requested with `-h` or `--help`.
  enum HelpRequest {
    case short
    case full
  }
  var help: HelpRequest?
  var asksForVersion = false

  var command: any ParsableCommand.Type { commands[commands.count - 1] }
  /// The full name: "keyhaul device list".
  var name: String { commands.map { $0.commandName }.joined(separator: " ") }

  /// Finds the command that the arguments name.
  ///
  /// - Throws: `.usage` with a suggestion for an unknown command.
  static func resolve(
    _ arguments: [String], root: any ParsableCommand.Type, suggestions: Suggestions
  ) throws(CommandError) -> CommandPath {
    var path = CommandPath(commands: [root], arguments: [])
    var unread = arguments[...]
    var valueFlags = ValueFlags(root: root)
    while let argument = unread.popFirst() {
      let subcommands = path.command.configuration.subcommands
      let isCommandComplete = argument == "--" || subcommands.isEmpty
      if isCommandComplete {
        path.arguments.append(argument)
        path.arguments += unread
        break
      }
      if argument.hasPrefix("-"), argument != "-" {
        path.arguments.append(argument)
        if valueFlags.hasValue(argument), let value = unread.popFirst() { path.arguments.append(value) }
      } else if argument == "help", path.commands.count == 1 {
        path.help = .full
      } else if let subcommand = subcommands.first(where: { $0.commandName == argument }) {
        path.commands.append(subcommand)
      } else {
        throw unknownCommandError(argument, in: path, root: root, suggestions)
      }
    }
    path.readHelpFlags()
    return path
  }

  /// The flags among the arguments, and their values. Arguments after "--" are never flags.
  var flagArguments: ArraySlice<String> { arguments.prefix { $0 != "--" } }

  /// Sets `help` and `asksForVersion` from the flags.
  private mutating func readHelpFlags() {
    if flagArguments.contains("--help") {
      help = .full
    } else if flagArguments.contains(where: Self.asksForShortHelp) {
      help = .short
    }
    asksForVersion = flagArguments.contains("--version")
  }

  /// Parses the arguments with the command's own parser.
  ///
  /// Skips the root command's parser, because the command is already known. That parser would also check the
  /// declarations of each command several times in debug builds.
  func parse() throws -> any ParsableCommand {
    try printCompletionScriptIfRequested()
    let flags = flagArguments
    let operands = arguments.dropFirst(flags.count)
    if command is any NumericArgumentCommand.Type {
      let numbers = flags.filter(Self.isNegativeNumber)
      let otherFlags = flags.filter { !Self.isNegativeNumber($0) }
      // "--" keeps the parser from reading the numbers as flags. `operands` begins with the user's own "--".
      return try command.parseAsRoot(otherFlags + ["--"] + numbers + operands.dropFirst())
    }
    guard command is any TabularCommand.Type else { return try command.parseAsRoot(arguments) }
    let renamedFlags = flags.map { $0.hasPrefix("--json=") ? "--fields=" + $0.dropFirst("--json=".count) : $0 }
    return try command.parseAsRoot(renamedFlags + operands)
  }

  /// Passes `--generate-completion-script` to the root command's parser, the only one that has this flag. That parser
  /// throws the script as an error.
  private func printCompletionScriptIfRequested() throws {
    let flag = "--generate-completion-script"
    guard flagArguments.contains(where: { $0 == flag || $0.hasPrefix(flag + "=") }) else { return }
    _ = try commands[0].parseAsRoot(arguments)
  }

  private static func isNegativeNumber(_ argument: String) -> Bool {
    argument.count > 1 && argument.first == "-" && argument.dropFirst().allSatisfy { $0.isASCII && $0.isNumber }
  }

  /// The flags that take the next argument as their value.
  ///
  /// The options that all commands share are checked first. They are the usual case, and it takes far longer to collect
  /// the flags of every command.
  private struct ValueFlags {
    let root: any ParsableCommand.Type
    lazy var common = FlagCatalog.flags(of: CommonOptions.self)
    lazy var all = FlagCatalog.valueFlags(of: root)

    init(root: any ParsableCommand.Type) { self.root = root }

    /// Returns whether the argument after a flag is its value.
    mutating func hasValue(_ flag: String) -> Bool {
      if flag.contains("=") || ["--help", "-h", "--version"].contains(flag) { return false }
      if let commonFlag = common.first(where: { $0.names.contains(flag) }) { return commonFlag.valueName != nil }
      return all.contains(flag)
    }
  }

  /// Returns whether an argument is "-h", by itself or combined with other short flags that have no value: "-qh".
  private static func asksForShortHelp(_ argument: String) -> Bool {
    let letters = argument.dropFirst()
    return argument.first == "-" && letters.allSatisfy("hnqvy".contains) && letters.count { $0 == "h" } == 1
  }
}
