import ArgumentParser
import KeyhaulKit

/// The short help of a group: its verbs.
enum GroupHelp {
  static func lines(_ path: VerbPath, style: TextStyle) -> [String] {
    let configuration = path.verb.configuration
    let verbs = configuration.subcommands.map {
      ($0.word, $0.configuration.abstract)
    }
    let widest = verbs.map(\.0.count).max() ?? 0
    return [
      style.painted(configuration.abstract + ".", .bold), "", "usage     \(path.name) <command> [arguments] [flags]",
      "",
    ]
      + verbs.map { "  " + DisplayWidth.padded($0.0, columns: widest) + "  " + $0.1 }
      + ["", "\"\(path.name) <command> -h\" describes a command."]
  }
}
