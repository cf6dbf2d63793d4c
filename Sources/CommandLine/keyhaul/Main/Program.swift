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

/// The entry point: ours around the argument parser, so that every error and every help page has one form.
@main
struct Program {
  let arguments: [String]
  let environment: [String: String]
  /// Whether the demo runs the command. It ends without a word if the program that reads its output ends.
  var isInDemo = false

  static func main() {
    ProcessMemory.guardAgainstDumps()
    ProcessMemory.giveBackLargeBlocks()
    StandardStreams.occupy()
    let arguments = Array(ProgramArguments.all.dropFirst())
    if arguments.first == "--version" {
      let line = Array((ProgramVersion.line + "\n").utf8)
      // What cannot be written is said where everything else is.
      if (try? ByteStream.writeAll(line, to: 1)) != nil { exit(0) }
    }
    OpenSSL.disableExitCleanup()
    Interruption.install()
    let status = Program(arguments: arguments, environment: ProgramEnvironment.all).run()
    ProcessMemory.wipeSecrets()
    exit(status.code)
  }

  func run() -> CommandStatus {
    if let first = arguments.first, Self.isForOtherTools(first) { return answerToolQueries() }
    let path: VerbPath
    do {
      path = try VerbPath.resolve(arguments, root: Keyhaul.self, guesses: Keyhaul.guesses)
      if let status = try answerHelp(path) { return status }
    } catch {
      return unparsedSession().fail(CommandFailure(any: error))
    }
    let parsed: any ParsableCommand
    do {
      parsed = try path.parse()
    } catch {
      if let status = answer(error) { return status }
      return unparsedSession().fail(
        ParserMessage.failure(
          path.verb.message(for: error), command: path.name, flags: FlagCatalog.names(of: path.verb),
          formats: (path.verb as? any Verb.Type)?.formats ?? OutputFormat.allCases,
          verbs: { FlagCatalog.verbs(with: $0, of: Keyhaul.self) }))
    }
    if let verb = parsed as? any TabularVerb {
      do {
        return run(try verb.printingChosenFields(), named: path.name)
      } catch {
        return unparsedSession().fail(error)
      }
    }
    if let verb = parsed as? any RunnableVerb { return run(verb, named: path.name) }
    return runBuiltIn(parsed)
  }

  /// What the parser brings along itself: its `help` verb.
  private func runBuiltIn(_ command: any ParsableCommand) -> CommandStatus {
    var command = command
    do {
      try command.run()
      return .ok
    } catch {
      return answer(error) ?? unparsedSession().fail(.usage("a command is missing", try: "keyhaul -h"))
    }
  }

  private func answerToolQueries() -> CommandStatus {
    do {
      return runBuiltIn(try Keyhaul.parseAsRoot(arguments))
    } catch {
      return answer(error)
        ?? unparsedSession().fail(
          ParserMessage.failure(Keyhaul.message(for: error), command: "keyhaul", flags: []))
    }
  }

  /// Shows what the parser throws as an answer: scripts and descriptions for other tools to read.
  private func answer(_ error: any Error) -> CommandStatus? {
    guard Keyhaul.exitCode(for: error).isSuccess else { return nil }
    let session = unparsedSession(mayBeJSON: false)
    do {
      try session.say(Keyhaul.message(for: error))
      try session.flush()
      return .ok
    } catch {
      return session.fail(error)
    }
  }

  private func run(_ verb: any RunnableVerb, named name: String) -> CommandStatus {
    let session = Session(common: verb.messageOptions, verb: name, environment: environment)
    do {
      try verb.common.check(formats: type(of: verb).formats, answersBeside: type(of: verb).answersBesideFiles)
      let status = try verb.perform(in: session)
      try session.flush()
      return session.settled(status)
    } catch {
      let failure = session.settled(error)
      if isInDemo, failure.isClosedPipe { return .signal(Errno.closedPipeSignal) }
      return session.fail(failure)
    }
  }

  /// Shows help or the version where that is what the arguments ask for, or all that they can mean.
  private func answerHelp(_ path: VerbPath) throws -> CommandStatus? {
    if path.help == nil, !path.asksForVersion, !arguments.isEmpty {
      if path.verb.configuration.subcommands.isEmpty { return nil }
      throw path.missingVerb
    }
    let session = unparsedSession(mayBeJSON: false)
    let style = session.resultStyle
    if path.help == nil, path.asksForVersion {
      try session.say(ProgramVersion.line)
    } else if path.help == .full {
      let columns = min(style.width, CommandFailure.widestText)
      try session.say(path.verb.fullHelp(below: Keyhaul.self, columns: columns))
    } else {
      for line in try shortHelp(path, style: style) { try session.say(line) }
    }
    try session.flush()
    return .ok
  }

  /// Flags that the parser answers by itself, for completion scripts and manual pages.
  private static func isForOtherTools(_ argument: String) -> Bool {
    argument == "---completion" || argument == "--experimental-dump-help"
      || argument.hasPrefix("--generate-completion-script")
  }

  private func shortHelp(_ path: VerbPath, style: TextStyle) throws -> [String] {
    if let verb = path.verb as? any Verb.Type { return verb.screen.lines(of: verb, style: style) }
    if path.commands.count == 1 { return Keyhaul.shortHelp(style: style) }
    return GroupHelp.lines(path, style: style)
  }

  /// A session for what happens before the flags are known: they are looked for by eye.
  private func unparsedSession(mayBeJSON: Bool = true) -> Session {
    let flags = arguments.prefix { $0 != "--" }
    var common = CommonOptions()
    common.json = mayBeJSON && UnparsedFlags.wantsJSON(flags)
    common.format = nil
    common.home = nil
    common.quiet = false
    common.verbose = flags.contains { $0 == "-v" || $0 == "-vv" || $0 == "--verbose" } ? 1 : 0
    common.color = UnparsedFlags.color(flags)
    common.noProgress = false
    common.noInput = true
    common.yes = false
    return Session(common: common, environment: environment)
  }
}
