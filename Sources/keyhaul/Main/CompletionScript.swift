import ArgumentParser
import CommandSession

/// The parser's completion script of a shell. To it the forms of a result are one flag of all verbs; here each verb offers
/// those that its own has.
struct CompletionScript {
  private let shell: Completions.Shell

  init(for shell: Completions.Shell) { self.shell = shell }

  var text: String {
    let all = words(of: OutputFormat.allCases)
    var verb: (any Verb.Type)?
    return Keyhaul.completionScript(for: shell.parserShell).split(separator: "\n", omittingEmptySubsequences: false)
      .map { (line) -> String in
        if let path = path(in: line) { verb = Self.verb(path) }
        guard let verb, line.contains(all) else { return String(line) }
        return String(line).replacing(all, with: words(of: verb.formats))
      }.joined(separator: "\n")
  }

  /// The verb that this line begins, or is about.
  private func path(in line: Substring) -> [Substring]? {
    switch shell {
    case .bash, .zsh: line.firstMatch(of: /^_keyhaul((?:_[a-z]+)*)\(\) \{/)?.1.split(separator: "_")
    case .fish: line.firstMatch(of: /^complete .*"keyhaul ([a-z ]+)" format'/)?.1.split(separator: " ")
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

  private static func verb(_ path: [Substring]) -> (any Verb.Type)? {
    var command: any ParsableCommand.Type = Keyhaul.self
    for word in path {
      guard let next = command.configuration.subcommands.first(where: { $0.word == word }) else { return nil }
      command = next
    }
    return command as? any Verb.Type
  }
}
