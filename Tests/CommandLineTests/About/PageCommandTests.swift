import ArgumentParser
import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Commands shown on documentation pages")
struct PageCommandTests {
  @Test("The program can parse every command shown on a page", arguments: ["README.md", "docs"])
  func parse(path: String) throws {
    var count = 0
    for page in try pages(at: path) {
      let text = try String(contentsOf: page, encoding: .utf8)
      for call in Self.calls(in: text) {
        count += 1
        do {
          _ = try Self.command(of: call)
        } catch {
          Issue.record("\(page.lastPathComponent): keyhaul \(call.joined(separator: " ")): \(error)")
        }
      }
    }
    // Fewer calls would mean that the search no longer finds them.
    #expect(count >= (path == "README.md" ? 14 : 15), "calls found in \(path)")
  }

  @Test("A shown command with a wrong command name, flag or argument is detected")
  func canFail() throws {
    let wrongTexts = [
      "```\n$ keyhaul plan a.backup --too b\n```", "`keyhaul plann a.backup --to b`",
      "`keyhaul restore a.backup b --to c`",
      "```sh\nkeyhaul device create 'a b' \\\n  --form x   # a fixture\n```",
    ]
    for text in wrongTexts {
      let call = try #require(Self.calls(in: text).first, "\(text)")
      #expect(throws: (any Error).self, "\(text)") { _ = try Self.command(of: call) }
    }
    let rightText = "`keyhaul verify`, `keyhaul device create 'a b' > x`, `keyhaul plan [ARCHIVE]`"
    #expect(Self.calls(in: rightText) == [["verify"], ["device", "create", "a b"]])
  }

  /// Returns the type of the command that a call names. Also parses the call's arguments, if it has any.
  private static func command(of call: [String]) throws -> any ParsableCommand.Type {
    let path = try CommandPath.resolve(call, root: AllCommands.self, suggestions: Keyhaul.suggestions)
    guard !path.arguments.isEmpty, path.help == nil else { return path.command }
    return type(of: try AllCommands.parse(line: call))
  }

  private func pages(at path: String) throws -> [URL] {
    let url = Repository.root.appending(path: path)
    guard path == "docs" else { return [url] }
    let names = try #require(FileManager.default.enumerator(atPath: url.path)).compactMap { $0 as? String }
    return names.filter { $0.hasSuffix(".md") }.sorted().map { url.appending(path: $0) }
  }

  /// Returns the words after `keyhaul` of every call at the beginning of a line or in inline code. Calls with a bracket
  /// or an ellipsis are left out, because they only describe the syntax.
  private static func calls(in text: String) -> [[String]] {
    let withoutContinuations = text.replacing("\\\n", with: " ")
    let inline = withoutContinuations.matches(of: /`keyhaul ([^`\n]+)`/).map { String($0.1) }
    let lines = withoutContinuations.matches(of: /(?m)^ *(?:\$ )?keyhaul (.+)$/).map { String($0.1) }
    return (inline + lines).filter { !$0.contains(/[\[…]|\.\.\./) }.map(shellWords)
  }

  /// Returns the words of a shell line, up to a comment, a pipe or a redirection.
  private static func shellWords(of line: String) -> [String] {
    var words: [String] = []
    for match in line.matches(of: /"([^"]*)"|'([^']*)'|([^\s"']+)/) {
      let (doubleQuoted, singleQuoted, unquoted) = (match.1, match.2, match.3)
      if let first = unquoted?.first, "#>|;&".contains(first) { break }
      words.append(String(doubleQuoted ?? singleQuoted ?? unquoted ?? ""))
    }
    return words
  }
}
