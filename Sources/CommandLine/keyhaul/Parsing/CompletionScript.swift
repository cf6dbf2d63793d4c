import ArgumentParser
import KeyhaulKit

/// The completion script for a shell. The parser's script offers all output formats for every command. In this script,
/// each command has only its own formats.
struct CompletionScript {
  /// A shell with a completion script.
  enum Shell: String, KeywordArgument {
    case bash
    case zsh
    case fish

    fileprivate var parserShell: CompletionShell {
      switch self {
      case .bash: .bash
      case .zsh: .zsh
      case .fish: .fish
      }
    }
  }

  private let root: any ParsableCommand.Type
  private let shell: Shell

  /// - Parameter root: The root command.
  init(of root: any ParsableCommand.Type, for shell: Shell) {
    self.root = root
    self.shell = shell
  }

  var text: String {
    let allFormats = formatList(of: OutputFormat.allCases)
    var command: (any KeyhaulCommand.Type)?
    return root.completionScript(for: shell.parserShell).split(separator: "\n", omittingEmptySubsequences: false)
      .map { (line) -> String in
        if let path = path(in: line) { command = self.command(at: path) }
        guard let command, line.contains(allFormats) else { return String(line) }
        return String(line).replacing(allFormats, with: formatList(of: command.formats))
      }.joined(separator: "\n")
  }

  /// Returns the path of the command that a line of the script is about; `nil` if the line names no command.
  private func path(in line: Substring) -> [Substring]? {
    switch shell {
    // bash and zsh: `_keyhaul_device_list() {`. fish: `complete … "keyhaul device list" format'…`.
    case .bash, .zsh: line.firstMatch(of: /^_keyhaul([^(]*)\(\) \{/)?.1.split(separator: "_")
    case .fish: line.firstMatch(of: /^complete .*"keyhaul ([^"]+)" format'/)?.1.split(separator: " ")
    }
  }

  /// Returns the formats in the shell's syntax.
  private func formatList(of formats: [OutputFormat]) -> String {
    let names = formats.map(\.rawValue)
    return switch shell {
    case .bash: names.map { "'\($0)'" }.joined(separator: "$'\\n'")
    case .zsh: names.map { "'\($0)'" }.joined(separator: " ")
    case .fish: names.joined(separator: " ")
    }
  }

  /// Returns the command at a path; `nil` if it is unknown. Its formats are then not replaced.
  private func command(at path: [Substring]) -> (any KeyhaulCommand.Type)? {
    var command = root
    for word in path {
      guard let next = command.configuration.subcommands.first(where: { $0.commandName == word }) else { return nil }
      command = next
    }
    return command as? any KeyhaulCommand.Type
  }
}
