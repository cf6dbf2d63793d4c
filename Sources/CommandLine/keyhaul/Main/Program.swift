import ArgumentParser
import KeyhaulKit
import SystemPackage

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// The entry point. It runs the argument parser, so that every error and every help page has the same form.
@main
struct Program {
  let arguments: [String]
  let environment: [String: String]
  /// Whether the demo runs the command. A command of the demo ends without a message if the reader of its output has
  /// ended.
  var isInDemo = false

  static func main() {
    ProcessMemory.disableCoreDumps()
    ProcessMemory.enableLargeBlockRelease()
    StandardStreams.reserveClosedDescriptors()
    let arguments = Array(ProgramArguments.all.dropFirst())
    if arguments.first == "--version" {
      let line = Array((ProgramVersion.line + "\n").utf8)
      // If this cannot be written, the regular path below reports the error.
      if (try? BufferedOutput.writeAll(line, to: 1)) != nil { exit(0) }
    }
    OpenSSL.disableExitCleanup()
    Interruption.install()
    let status = Program(arguments: arguments, environment: ProgramEnvironment.all).run()
    ProcessMemory.wipeSecrets()
    exit(status.code)
  }

  func run() -> CommandExitStatus {
    if let first = arguments.first, Self.isForParser(first) { return runParserFlag() }
    do {
      let path = try CommandPath.resolve(arguments, root: Keyhaul.self, suggestions: Keyhaul.suggestions)
      if let status = try printHelp(path) { return status }
      return parseAndRun(path)
    } catch {
      return earlySession().fail(CommandError(any: error))
    }
  }

  /// Parses the arguments of the command that the user named, and runs it.
  private func parseAndRun(_ path: CommandPath) -> CommandExitStatus {
    let command: any ParsableCommand
    do {
      command = try path.parse()
    } catch {
      return printParserOutput(error) ?? earlySession().fail(parserError(error, of: path))
    }
    if let command = command as? any TabularCommand {
      do {
        return run(try command.printingChosenFields(), named: path.name)
      } catch {
        return earlySession().fail(error)
      }
    }
    if let command = command as? any RunnableCommand { return run(command, named: path.name) }
    return runBuiltIn(command)
  }

  /// Returns the error of this program for an error of the argument parser.
  private func parserError(_ error: any Error, of path: CommandPath) -> CommandError {
    ParserMessage.failure(
      path.command.message(for: error), command: path.name, flags: FlagCatalog.names(of: path.command),
      formats: (path.command as? any KeyhaulCommand.Type)?.formats ?? OutputFormat.allCases,
      commands: { FlagCatalog.commands(with: $0, of: Keyhaul.self) })
  }

  /// Runs a command that the argument parser provides, such as `help`.
  private func runBuiltIn(_ command: any ParsableCommand) -> CommandExitStatus {
    var command = command
    do {
      try command.run()
      return .ok
    } catch {
      return printParserOutput(error) ?? earlySession().fail(.usage("a command is missing", try: "keyhaul -h"))
    }
  }

  /// Runs a flag that the argument parser handles itself.
  private func runParserFlag() -> CommandExitStatus {
    do {
      return runBuiltIn(try Keyhaul.parseAsRoot(arguments))
    } catch {
      return printParserOutput(error)
        ?? earlySession().fail(
          ParserMessage.failure(Keyhaul.message(for: error), command: "keyhaul", flags: []))
    }
  }

  /// Prints a script or description, which the parser throws as an error; returns `nil` if it is a real error.
  private func printParserOutput(_ error: any Error) -> CommandExitStatus? {
    guard Keyhaul.exitCode(for: error).isSuccess else { return nil }
    let session = earlySession(mayBeJSON: false)
    do {
      try session.print(Keyhaul.message(for: error))
      try session.flush()
      return .ok
    } catch {
      return session.fail(error)
    }
  }

  private func run(_ command: any RunnableCommand, named name: String) -> CommandExitStatus {
    let session = Session(common: command.messageOptions, commandName: name, environment: environment)
    do {
      try command.common.check(
        formats: type(of: command).formats, allowsJSONWithFormat: type(of: command).allowsJSONWithFormat)
      let status = try command.run(in: session)
      try session.flush()
      return session.finalStatus(status)
    } catch {
      let failure = session.errorAfterChange(error)
      if isInDemo, failure.isClosedPipe { return .closedPipe }
      return session.fail(failure)
    }
  }

  /// Prints help or the version if the arguments ask for it; returns `nil` if they name a command to run.
  ///
  /// - Throws: `.usage` if the arguments name a group of commands, but not a command; the errors of printing.
  private func printHelp(_ path: CommandPath) throws -> CommandExitStatus? {
    if path.help == nil, !path.asksForVersion, !arguments.isEmpty {
      if path.command.configuration.subcommands.isEmpty { return nil }
      throw path.missingCommandError
    }
    let session = earlySession(mayBeJSON: false)
    let style = session.resultStyle
    if path.help == nil, path.asksForVersion {
      try session.print(ProgramVersion.line)
    } else if path.help == .full {
      let columns = min(style.width, CommandError.maximumWidth)
      try session.print(path.command.fullHelp(below: Keyhaul.self, columns: columns))
    } else {
      for line in try shortHelp(path, style: style) { try session.print(line) }
    }
    try session.flush()
    return .ok
  }

  /// Returns whether the parser handles a flag itself, for completion scripts and manual pages.
  private static func isForParser(_ argument: String) -> Bool {
    argument == "---completion" || argument == "--experimental-dump-help"
      || argument.hasPrefix("--generate-completion-script")
  }

  private func shortHelp(_ path: CommandPath, style: TextStyle) throws -> [String] {
    if let command = path.command as? any KeyhaulCommand.Type {
      return command.helpScreen.lines(of: command, style: style)
    }
    if path.commands.count == 1 { return Keyhaul.shortHelp(style: style) }
    return GroupHelp.lines(path, style: style)
  }

  /// Returns a session for errors that occur before the arguments are parsed. It finds the flags by their text.
  ///
  /// Sets every option, because an option that was not parsed has no value.
  private func earlySession(mayBeJSON: Bool = true) -> Session {
    let flags = arguments.prefix { $0 != "--" }
    var common = CommonOptions()
    common.json = mayBeJSON && EarlyFlags.wantsJSON(flags)
    common.format = nil
    common.home = nil
    common.quiet = false
    common.verbose = flags.contains { $0 == "-v" || $0 == "-vv" || $0 == "--verbose" } ? 1 : 0
    common.color = EarlyFlags.color(flags)
    common.noProgress = false
    common.noInput = true
    common.yes = false
    return Session(common: common, environment: environment)
  }
}

/// The flags that change the format of an error. They are found without the parser, because the parser may have thrown
/// the error.
private enum EarlyFlags {
  static func wantsJSON(_ arguments: ArraySlice<String>) -> Bool {
    arguments.contains { $0 == "--json" || $0 == "--fields" || $0.hasPrefix("--json=") || $0.hasPrefix("--fields=") }
      || lastValue(of: "--format", in: arguments) == "json"
  }

  static func color(_ arguments: ArraySlice<String>) -> ColorChoice {
    lastValue(of: "--color", in: arguments).flatMap { ColorChoice(rawValue: $0) } ?? .auto
  }

  /// Returns the value of the last occurrence of a flag, after an equal sign or in the next argument; `nil` if there is
  /// none.
  private static func lastValue(of flag: String, in arguments: ArraySlice<String>) -> String? {
    let prefix = "\(flag)="
    guard let index = arguments.lastIndex(where: { $0 == flag || $0.hasPrefix(prefix) }) else { return nil }
    if arguments[index] != flag { return String(arguments[index].dropFirst(prefix.count)) }
    return index + 1 < arguments.endIndex ? arguments[index + 1] : nil
  }
}
