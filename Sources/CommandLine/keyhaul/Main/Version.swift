import ArgumentParser
import KeyhaulKit

/// `keyhaul version`: shows the version of this program and its libraries.
struct Version: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Show the version of Keyhaul and its libraries",
    usage: "keyhaul version",
    examples: ["keyhaul version", "keyhaul version --json"],
    flags: ["--json"])
  static let configuration = makeConfiguration(named: "version")

  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    if session.isJSON {
      try session.writeDocument(ProgramVersion.json)
    } else {
      for line in ProgramVersion.lines { try session.print(line) }
    }
    return .ok
  }
}

/// `keyhaul completions SHELL`: prints the completion script for a shell.
struct Completions: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Print a completion script for a shell",
    usage: "keyhaul completions SHELL",
    examples: [
      "keyhaul completions bash > ~/.local/share/bash-completion/completions/keyhaul",
      "keyhaul completions fish > ~/.config/fish/completions/keyhaul.fish",
    ],
    flags: [])
  static let configuration = makeConfiguration(named: "completions")

  @Argument(help: "bash, zsh or fish.") var shell: CompletionScript.Shell
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func run(in session: Session) throws -> CommandExitStatus {
    let script = CompletionScript(of: Keyhaul.self, for: shell).text
    if session.isJSON {
      try session.writeDocument(
        ["format": "completion-script/1", "shell": .string(shell.rawValue), "script": .string(script)])
    } else {
      try session.writeRaw(Array((script.hasSuffix("\n") ? script : script + "\n").utf8))
    }
    return .ok
  }
}
