import ArgumentParser
import KeyhaulKit

/// `keyhaul version`: which program this is, and on which libraries it runs.
struct Version: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Show the version of Keyhaul and its libraries",
    usage: "keyhaul version",
    examples: ["keyhaul version", "keyhaul version --json"],
    flags: ["--json"])
  static let configuration = described(as: "version")

  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    if session.isJSON {
      try session.answer(ProgramVersion.json)
    } else {
      for line in ProgramVersion.lines { try session.say(line) }
    }
    return .ok
  }
}

/// `keyhaul completions SHELL`: the script that teaches a shell our verbs and flags.
struct Completions: RunnableVerb {
  static let screen = HelpScreen(
    sentence: "Print a completion script for a shell",
    usage: "keyhaul completions SHELL",
    examples: [
      "keyhaul completions bash > ~/.local/share/bash-completion/completions/keyhaul",
      "keyhaul completions fish > ~/.config/fish/completions/keyhaul.fish",
    ],
    flags: [])
  static let configuration = described(as: "completions")

  @Argument(help: "bash, zsh or fish.") var shell: CompletionScript.Shell
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    let script = CompletionScript(of: Keyhaul.self, for: shell).text
    if session.isJSON {
      try session.answer(
        ["format": "completion-script/1", "shell": .string(shell.rawValue), "script": .string(script)])
    } else {
      try session.writeRaw(Array((script.hasSuffix("\n") ? script : script + "\n").utf8))
    }
    return .ok
  }
}
