import Foundation

@testable import keyhaul

/// A recorded session in text form: commands, typed lines and the expected output.
///
/// ```
/// # A comment
/// $ keyhaul explain nothing      a line for the shell
/// < 1234                         typed at a prompt; the command then has a terminal
/// > Passcode of old-phone:       what the terminal shows
/// ! error: there is …            standard error
/// = 64                           the exit code, if it is not 0
/// anything else                  standard output
/// ```
/// `[..]` stands for any text within a line.
struct SessionScript {
  struct Step {
    let lineNumber: Int
    let command: String
    var typed: [String] = []
    var terminal: [String] = []
    var errors: [String] = []
    var output: [String] = []
    var status: Int32 = 0
  }

  private(set) var steps: [Step] = []

  init(_ text: String) {
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      let content = line.dropFirst(2)
      if line.hasPrefix("$ ") {
        steps.append(Step(lineNumber: index + 1, command: String(content)))
      } else if let last = steps.indices.last {
        switch line.prefix(2) {
        case "# ", "#": continue
        case "< ": steps[last].typed.append(String(content))
        case "> ", ">": steps[last].terminal.append(String(content))
        case "! ", "!": steps[last].errors.append(String(content))
        case "= ": steps[last].status = Int32(content) ?? -1
        default: steps[last].output.append(String(line))
        }
      }
    }
    // Blank lines between the steps are not output.
    for index in steps.indices {
      while steps[index].output.last == "" { steps[index].output.removeLast() }
    }
  }

  /// Returns whether a text matches a pattern, ignoring line breaks at the end of the text.
  static func matches(_ text: String, _ pattern: [String]) -> Bool {
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    while lines.last == "" { lines.removeLast() }
    return lines.count == pattern.count && zip(lines, pattern).allSatisfy { matches(line: $0, $1) }
  }

  static func matches(line: String, _ pattern: String) -> Bool {
    let parts = pattern.components(separatedBy: "[..]")
    guard parts.count > 1, let first = parts.first, let last = parts.last else { return line == pattern }
    guard line.hasPrefix(first) else { return false }
    var remainder = line.dropFirst(first.count)
    for part in parts.dropFirst().dropLast() {
      guard let range = remainder.range(of: part) else { return false }
      remainder = remainder[range.upperBound...]
    }
    return remainder.hasSuffix(last)
  }
}
