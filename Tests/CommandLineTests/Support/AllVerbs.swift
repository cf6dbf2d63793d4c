import ArgumentParser

@testable import keyhaul

/// A root with every verb that is declared, whether it can run yet or not.
struct AllVerbs: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keyhaul",
    subcommands: [
      DeviceGroup.self, ItemGroup.self, BackupCommand.self, Inspect.self, Verify.self, Diff.self, Export.self,
      Rekey.self,
      Convert.self, Seal.self, SimulatorGroup.self, PlanCommand.self, Restore.self, Why.self, Demo.self, Explain.self,
      Completions.self, Version.self,
    ],
    helpNames: .long)

  /// Every verb below a command, with the words that name it.
  static func leaves(
    of command: any ParsableCommand.Type = AllVerbs.self, words: [String] = []
  ) -> [(words: [String], verb: any ParsableCommand.Type)] {
    let below = command.configuration.subcommands
    return below.isEmpty ? [(words, command)] : below.flatMap { leaves(of: $0, words: words + [$0.word]) }
  }

  /// Parses a line as the program does.
  static func parse(line: [String]) throws -> any ParsableCommand {
    let path = try VerbPath.resolve(line, root: AllVerbs.self, guesses: Keyhaul.guesses)
    do {
      return try path.parse()
    } catch {
      throw ParserMessage.failure(
        path.verb.message(for: error), command: path.name, flags: FlagCatalog.names(of: path.verb))
    }
  }
}
