import ArgumentParser

@testable import keyhaul

/// A root command with every declared command, even commands that cannot run yet.
struct AllCommands: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "keyhaul",
    subcommands: [
      DeviceGroup.self, ItemGroup.self, BackupCommand.self, Inspect.self, Verify.self, Diff.self, Export.self,
      Rekey.self,
      Convert.self, Seal.self, SimulatorGroup.self, PlanCommand.self, Restore.self, Why.self, Demo.self, Explain.self,
      Completions.self, Version.self,
    ],
    helpNames: .long)

  /// Returns the commands below a group that have no subcommands, with the words of their names.
  static func leaves(
    of command: any ParsableCommand.Type = AllCommands.self, words: [String] = []
  ) -> [(words: [String], command: any ParsableCommand.Type)] {
    let subcommands = command.configuration.subcommands
    if subcommands.isEmpty { return [(words, command)] }
    return subcommands.flatMap { leaves(of: $0, words: words + [$0.commandName]) }
  }

  /// Parses arguments like the program.
  static func parse(line: [String]) throws -> any ParsableCommand {
    let path = try CommandPath.resolve(line, root: AllCommands.self, suggestions: Keyhaul.suggestions)
    do {
      return try path.parse()
    } catch {
      throw ParserMessage.failure(
        path.command.message(for: error), command: path.name, flags: FlagCatalog.names(of: path.command))
    }
  }
}
