/// The short help of a verb, for `-h`: a sentence, two examples, the common flags. `--help` says everything.
package struct HelpScreen: Sendable {
  /// One line, capital first, no full stop: "Back up a device's keychain".
  package let sentence: String
  /// "keyhaul backup DEVICE -o ARCHIVE [--no-password]"
  package let usage: String
  package let examples: [String]
  /// The flags worth knowing first, with what they do.
  package let flags: [(String, String)]

  package init(sentence: String, usage: String, examples: [String], flags: [(String, String)]) {
    self.sentence = sentence
    self.usage = usage
    self.examples = examples
    self.flags = flags
  }

  /// More rows than this would not be one screen.
  package static let maximumLineCount = 24

  package func lines(style: TextStyle) -> [String] {
    let verb = usage.split(separator: " ").prefix { $0.allSatisfy { $0.isLowercase } }.joined(separator: " ")
    var lines = [style.painted(sentence + ".", .bold), ""]
    lines += WordWrap.labelled("usage     ", usage, columns: style.width)
    for (index, example) in examples.enumerated() {
      lines.append((index == 0 ? "examples  " : "          ") + example)
    }
    if !flags.isEmpty { lines.append("") }
    let widest = flags.map { DisplayWidth.columns(of: $0.0) }.max() ?? 0
    for (flag, meaning) in flags {
      lines += WordWrap.labelled(
        "  " + DisplayWidth.padded(flag, columns: widest) + "  ", meaning, columns: style.width)
    }
    return (lines + ["", "\"\(verb) --help\" says everything."]).map(style.adapted)
  }
}

extension HelpScreen {
  package static let passwordFlag = ("--password-file PATH", "read the password from a file; also -fd, -command")
  package static let passcodeFlag = ("--passcode-file PATH", "read the passcode from a file; also -fd, -command")
  package static let dryRunFlag = ("-n, --dry-run", "show what would be done, and do nothing")
  package static let jsonFlag = ("--json", "print one JSON document")
  package static let waitFlag = ("--wait TIME", "how long to wait for a device in use: 30s, 2m")
  package static let yesFlag = ("-y, --yes", "answer yes to every question")
}
