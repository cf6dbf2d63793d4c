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

  @OptionGroup(title: "Flags of all commands") var common: CommonOptions

  func perform(in session: Session) throws -> CommandStatus {
    if session.isJSON {
      try session.answer(ProgramVersion.json)
    } else {
      for line in ProgramVersion.lines { try session.say(line) }
    }
    return .ok
  }
}
