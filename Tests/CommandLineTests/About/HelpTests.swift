import ArgumentParser
import Testing

@testable import keyhaul

@Suite("Help screens")
struct HelpTests {
  /// The commands by name, such as "device create".
  static var commands: [String: any ParsableCommand.Type] {
    Dictionary(uniqueKeysWithValues: AllCommands.leaves().map { ($0.words.joined(separator: " "), $0.command) })
  }
  static let commandNames = AllCommands.leaves().map { $0.words.joined(separator: " ") }

  func command(named name: String) throws -> any KeyhaulCommand.Type {
    try #require(Self.commands[name] as? any KeyhaulCommand.Type)
  }

  @Test("The short help of a command fits on a screen of 80 columns", arguments: commandNames)
  func oneScreen(name: String) throws {
    let command = try command(named: name)
    let lines = command.helpScreen.lines(of: command, style: .plain)
    #expect(lines.count <= HelpScreen.maximumLineCount)
    // Examples are commands, which are never broken.
    for line in lines where !line.contains("keyhaul ") { #expect(DisplayWidth.columns(of: line) <= 80) }
    #expect(lines.last == "\"keyhaul \(name) --help\" lists everything.")
  }

  @Test("The short help names only flags that the command has", arguments: commandNames)
  func flagsExist(name: String) throws {
    let command = try command(named: name)
    let flags = Set(FlagCatalog.names(of: command))
    let text = ([command.helpScreen.usage] + command.helpScreen.flags.map(\.flags)).joined(separator: " ")
    for flag in text.matches(of: /--[a-z][a-z-]*/) { #expect(flags.contains(String(flag.0))) }
  }

  @Test(
    "The short help describes a flag with the flag's own help, unless the row has its own text", arguments: commandNames
  )
  func flagDescriptions(name: String) throws {
    let command = try command(named: name)
    let flags = FlagCatalog.flags(of: command)
    let fullHelp = unwrapped(command.fullHelp(below: Keyhaul.self, columns: 100)).lowercased()
    let lines = command.helpScreen.lines(of: command, style: .plain)
    for row in command.helpScreen.flags where row.text == nil {
      #expect(flags.contains { $0.names.contains(row.flags) }, "\(row.flags) is not a flag, and has no text of its own")
      guard row.flags != "--format" else { continue }
      // A line is "  --flag VALUE  description; also VARIABLE".
      let line = try #require(lines.first { $0.hasPrefix("  -") && $0.contains(row.flags) })
      let description = try #require(line.firstMatch(of: /^  -.*?  +(.*)$/)).1
      let flagHelp = try #require(description.split(separator: "; also ").first)
      #expect(fullHelp.contains(flagHelp.lowercased()), "\(line)")
    }
  }

  @Test("The examples in the help can be parsed", arguments: commandNames)
  func examplesParse(name: String) throws {
    for example in try command(named: name).helpScreen.examples {
      // A word in quotes may contain spaces.
      let words = example.matches(of: /'[^']*'|\S+/).map { String($0.0.filter { $0 != "'" }) }
      #expect(words.first == "keyhaul")
      let line = words.dropFirst().prefix { $0 != ">" }
      let parsed = try AllCommands.parse(line: Array(line))
      #expect(Self.commands[name] == type(of: parsed))
    }
  }

  @Test("The full help lists exactly the formats that the command's result has", arguments: commandNames)
  func formats(name: String) throws {
    let command = try command(named: name)
    let formats = command.formats.map(\.rawValue).joined(separator: ", ")
    for columns in [60, 80, 120] {
      let text = command.fullHelp(below: Keyhaul.self, columns: columns)
      #expect(unwrapped(text).contains("--format <format> Output format. (values: \(formats)) -q, --quiet"))
      let lines = text.split(separator: "\n").filter { $0.contains("Output format") }
      #expect(lines.allSatisfy { $0.count <= columns }, "\(text)")
    }
  }

  @Test("The commands are exactly the documented ones")
  func allCommands() {
    #expect(
      Self.commandNames == [
        "device create", "device list", "device show", "device lock", "device unlock", "device restart",
        "device passcode set", "device passcode change", "device passcode remove", "device erase", "device delete",
        "device export", "device serve", "device fixture",
        "item add", "item find", "item update", "item delete", "backup", "inspect", "verify", "diff", "export",
        "rekey", "convert", "seal", "simulator list", "simulator seed", "simulator snapshot", "simulator restore",
        "simulator reset", "plan", "restore", "why", "demo", "explain", "completions", "version",
      ])
  }

  @Test("The help of the root command lists only commands that can run")
  func runnable() {
    for leaf in AllCommands.leaves(of: Keyhaul.self) { #expect(leaf.command is any RunnableCommand.Type) }
  }

  @Test("-h, --help and help request the help at any position, unless they are arguments")
  func requests() throws {
    #expect(try Self.resolve("backup -h").help == .short)
    #expect(try Self.resolve("-h backup").help == .short)
    #expect(try Self.resolve("backup -qh").help == .short)
    #expect(try Self.resolve("backup -hv").help == .short)
    // These are not -h, alone or once among other flags without a value.
    #expect(try Self.resolve("backup -hh").help == nil)
    #expect(try Self.resolve("backup -qx").help == nil)
    #expect(try Self.resolve("backup h -").help == nil)
    #expect(try Self.resolve("--help backup x").help == .full)
    #expect(try Self.resolve("help device passcode set").name == "keyhaul device passcode set")
    #expect(try Self.resolve("help device passcode set").help == .full)
    #expect(try Self.resolve("inspect -- -h").help == nil)
    #expect(try Self.resolve("inspect help").help == nil)
    #expect(try Self.resolve("device --help").name == "keyhaul device")
  }

  private static func resolve(_ line: String) throws -> CommandPath {
    try CommandPath.resolve(
      line.split(separator: " ").map(String.init), root: AllCommands.self, suggestions: Keyhaul.suggestions)
  }

  @Test("A flag before the command consumes only its own value")
  func flagsBeforeTheCommand() throws {
    for line in [
      "--home phones backup x", "--home=phones backup x", "-q backup x", "-qv backup x", "-o file backup x",
    ] {
      let path = try Self.resolve(line)
      #expect(path.name == "keyhaul backup")
      #expect(path.arguments == line.split(separator: " ").map(String.init).filter { $0 != "backup" })
    }
    #expect(try Self.resolve("--home backup inspect").name == "keyhaul inspect")
  }
}
