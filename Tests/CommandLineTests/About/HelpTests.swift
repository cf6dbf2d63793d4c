import ArgumentParser
import Testing

@testable import keyhaul

@Suite("Help")
struct HelpTests {
  static let verbs = AllVerbs.leaves().map { $0.words.joined(separator: " ") }

  func verb(_ name: String) throws -> any Verb.Type {
    let leaf = try #require(AllVerbs.leaves().first { $0.words.joined(separator: " ") == name })
    return try #require(leaf.verb as? any Verb.Type)
  }

  @Test("of a verb fits on one screen of 80 columns", arguments: verbs)
  func oneScreen(name: String) throws {
    let verb = try verb(name)
    let lines = verb.screen.lines(of: verb, style: .plain)
    #expect(lines.count <= HelpScreen.maximumLineCount)
    for line in lines where !line.contains("keyhaul ") { #expect(DisplayWidth.columns(of: line) <= 80) }
    #expect(lines.last == "\"keyhaul \(name) --help\" lists everything.")
  }

  @Test("names only flags that the verb has", arguments: verbs)
  func flagsExist(name: String) throws {
    let verb = try verb(name)
    let known = Set(FlagCatalog.names(of: verb))
    let text = ([verb.screen.usage] + verb.screen.flags.map(\.flags)).joined(separator: " ")
    let named = text.matches(of: /--[a-z][a-z-]*/).map { String($0.0) }
    for flag in named { #expect(known.contains(flag)) }
  }

  @Test("says of a flag what its own help says, where the row has no words of its own", arguments: verbs)
  func wordsStandOnce(name: String) throws {
    let verb = try verb(name)
    let flags = FlagCatalog.flags(of: verb)
    let full = verb.fullHelp(below: Keyhaul.self, columns: 100).split(whereSeparator: \.isWhitespace).joined(
      separator: " "
    ).lowercased()
    let lines = verb.screen.lines(of: verb, style: .plain)
    for row in verb.screen.flags where row.words == nil {
      #expect(flags.contains { $0.names.contains(row.flags) }, "\(row.flags) is no flag, and has no words")
      guard row.flags != "--format" else { continue }
      let shown = try #require(lines.first { $0.hasPrefix("  -") && $0.contains(row.flags) })
      let beginning = try #require(shown.firstMatch(of: /^  -.*?  +(.*)$/)).1.split(separator: "; also ").first
      #expect(full.contains(try #require(beginning).lowercased()), "\(shown)")
    }
  }

  @Test("gives examples that the verb understands", arguments: verbs)
  func examplesParse(name: String) throws {
    for example in try verb(name).screen.examples {
      // A word in quotes may contain spaces.
      let words = example.matches(of: /'[^']*'|\S+/).map { String($0.0.filter { $0 != "'" }) }
      #expect(words.first == "keyhaul")
      let line = words.dropFirst().prefix { $0 != ">" }
      let parsed = try AllVerbs.parse(line: Array(line))
      #expect(AllVerbs.leaves().first { $0.words.joined(separator: " ") == name }?.verb == type(of: parsed))
    }
  }

  @Test("in full names the forms that the verb's own result has, and no others", arguments: verbs)
  func forms(name: String) throws {
    let verb = try verb(name)
    let forms = verb.formats.map(\.rawValue).joined(separator: ", ")
    for columns in [60, 80, 120] {
      let text = verb.fullHelp(below: Keyhaul.self, columns: columns)
      let words = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
      #expect(words.contains("--format <format> Output format. (values: \(forms)) -q, --quiet"))
      let lines = text.split(separator: "\n").filter { $0.contains("Output format") }
      #expect(lines.allSatisfy { $0.count <= columns }, "\(text)")
    }
  }

  @Test("has every word of the contract's page")
  func allVerbs() {
    #expect(
      Self.verbs == [
        "device create", "device list", "device show", "device lock", "device unlock", "device restart",
        "device passcode set", "device passcode change", "device passcode remove", "device erase", "device delete",
        "device export", "device serve", "device fixture",
        "item add", "item find", "item update", "item delete", "backup", "inspect", "verify", "diff", "export",
        "rekey", "convert", "seal", "simulator list", "simulator seed", "simulator snapshot", "simulator restore",
        "simulator reset", "plan", "restore", "why", "demo", "explain", "completions", "version",
      ])
  }

  @Test("shows no verb of the root that cannot run")
  func runnable() {
    for leaf in AllVerbs.leaves(of: Keyhaul.self) { #expect(leaf.verb is any RunnableVerb.Type) }
  }

  @Test("is asked for by -h, --help and help, wherever they stand")
  func requests() throws {
    func help(_ line: String) throws -> VerbPath {
      try VerbPath.resolve(line.split(separator: " ").map(String.init), root: AllVerbs.self, guesses: Keyhaul.guesses)
    }
    #expect(try help("backup -h").help == .short)
    #expect(try help("-h backup").help == .short)
    #expect(try help("backup -qh").help == .short)
    #expect(try help("backup -hv").help == .short)
    #expect(try help("backup -hh").help == nil)
    #expect(try help("backup -qx").help == nil)
    #expect(try help("backup h -").help == nil)
    #expect(try help("--help backup x").help == .full)
    #expect(try help("help device passcode set").name == "keyhaul device passcode set")
    #expect(try help("help device passcode set").help == .full)
    #expect(try help("inspect -- -h").help == nil)
    #expect(try help("inspect help").help == nil)
    #expect(try help("device --help").name == "keyhaul device")
  }

  @Test("a flag before the verb takes its value along and nothing else")
  func flagsBeforeTheVerb() throws {
    func path(_ line: String) throws -> VerbPath {
      try VerbPath.resolve(line.split(separator: " ").map(String.init), root: AllVerbs.self, guesses: Keyhaul.guesses)
    }
    for line in [
      "--home phones backup x", "--home=phones backup x", "-q backup x", "-qv backup x", "-o file backup x",
    ] {
      let found = try path(line)
      #expect(found.name == "keyhaul backup")
      #expect(found.arguments == line.split(separator: " ").map(String.init).filter { $0 != "backup" })
    }
    #expect(try path("--home backup inspect").name == "keyhaul inspect")
  }
}
