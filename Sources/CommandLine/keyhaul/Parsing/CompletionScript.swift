import ArgumentParser
import KeyhaulKit

/// The parser's completion script of a shell. To it the forms of a result are one flag of all verbs; here each verb offers
/// those that its own has.
struct CompletionScript {
  /// A shell that there is a script for.
  enum Shell: String, WordArgument {
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

  /// - Parameter root: The program, below which the verbs are.
  init(of root: any ParsableCommand.Type, for shell: Shell) {
    self.root = root
    self.shell = shell
  }

  var text: String {
    let all = words(of: OutputFormat.allCases)
    var verb: (any Verb.Type)?
    return root.completionScript(for: shell.parserShell).split(separator: "\n", omittingEmptySubsequences: false)
      .map { (line) -> String in
        if let path = path(in: line) { verb = self.verb(path) }
        guard let verb, line.contains(all) else { return String(line) }
        return String(line).replacing(all, with: words(of: verb.formats))
      }.joined(separator: "\n")
  }

  /// The words of the verb that this line begins, or is about. One that is not found has the parser's forms.
  private func path(in line: Substring) -> [Substring]? {
    switch shell {
    case .bash, .zsh: line.firstMatch(of: /^_keyhaul([^(]*)\(\) \{/)?.1.split(separator: "_")
    case .fish: line.firstMatch(of: /^complete .*"keyhaul ([^"]+)" format'/)?.1.split(separator: " ")
    }
  }

  /// The forms as the shell's script has them.
  private func words(of forms: [OutputFormat]) -> String {
    let names = forms.map(\.rawValue)
    return switch shell {
    case .bash: names.map { "'\($0)'" }.joined(separator: "$'\\n'")
    case .zsh: names.map { "'\($0)'" }.joined(separator: " ")
    case .fish: names.joined(separator: " ")
    }
  }

  private func verb(_ path: [Substring]) -> (any Verb.Type)? {
    var command = root
    for word in path {
      guard let next = command.configuration.subcommands.first(where: { $0.word == word }) else { return nil }
      command = next
    }
    return command as? any Verb.Type
  }
}
