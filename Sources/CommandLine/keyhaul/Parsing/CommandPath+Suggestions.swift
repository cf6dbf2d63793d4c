import ArgumentParser
import KeyhaulKit

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

extension CommandPath {
  /// Suggestions for a word that is not a command.
  struct Suggestions: Sendable {
    /// Names that other programs use, and the command that does the same: "decrypt": "export".
    let synonyms: [String: String]
    /// The command to suggest if the word is a file.
    let commandForFiles: String
  }

  /// The error for a group without a command, such as `keyhaul device`, or for a mistyped flag that needs no command.
  var missingCommandError: CommandError {
    let flags = flagArguments.filter { $0.hasPrefix("--") }.map { String($0.prefix { $0 != "=" }) }
    let unknownFlag = flags.first { FlagCatalog.commands(with: $0, of: commands[0]).isEmpty }
    let flagsWithoutCommand = ["--help", "--version"] + FlagCatalog.flags(of: CommonOptions.self).flatMap(\.names)
    if let unknownFlag, let similar = EditDistance.nearest(to: unknownFlag, among: flagsWithoutCommand) {
      return .usage(
        "\(name) has no flag \(UntrustedText.shortened(unknownFlag, columns: 40))", why: "\(similar) is similar",
        try: "\(name) \(similar)")
    }
    let names = command.configuration.subcommands.map { $0.commandName }
    return .usage("\(name) needs a command", why: "its commands are \(HumanReadable.list(names))", try: "\(name) -h")
  }

  /// Returns the error for a word that is not a command. It suggests, in this order: a command with a similar name, a
  /// subcommand of another group, a synonym, or a command for a file.
  static func unknownCommandError(
    _ word: String, in path: CommandPath, root: any ParsableCommand.Type, _ suggestions: Suggestions
  ) -> CommandError {
    let names = path.command.configuration.subcommands.map { $0.commandName }
    let title = UntrustedText.shortened(word, columns: 40)
    let message = "\(path.name) has no command \"\(title)\""
    if suggestions.synonyms[word.lowercased()] == nil, let similar = EditDistance.nearest(to: word, among: names) {
      return .usage(message, try: "\(path.name) \(similar)")
    }
    for group in root.configuration.subcommands {
      let subcommands = group.configuration.subcommands.map { $0.commandName }
      if subcommands.contains(word) {
        return .usage(
          message,
          why: "\"\(word)\" is a command of \(group.commandName)",
          try: "\(root.commandName) \(group.commandName) \(word)")
      }
    }
    if path.commands.count == 1, let synonym = suggestions.synonyms[word.lowercased()] {
      return .usage(message, why: "\"\(synonym)\" does that", try: "\(path.name) \(synonym)")
    }
    if path.commands.count == 1, FileManager.default.fileExists(atPath: word) {
      return .usage(
        message,
        why: "it is a file in this folder",
        try: "\(root.commandName) \(suggestions.commandForFiles) \(ShellQuoting.quote(word))")
    }
    return .usage(message, why: "its commands are \(HumanReadable.list(names))", try: "\(path.name) -h")
  }
}
