import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("The architecture page")
struct ArchitecturePageTests {
  /// Returns the names of the public and package error types, by the part of the library that declares them.
  private static func declaredErrorTypes() throws -> [String: Set<String>] {
    let sources = Repository.root.appending(path: "Sources")
    var names: [String: Set<String>] = [:]
    for path in try FileManager.default.subpathsOfDirectory(atPath: sources.path) where path.hasSuffix(".swift") {
      let text = try String(contentsOf: sources.appending(path: path), encoding: .utf8)
      for match in text.matches(of: /(?:public|package) (?:struct|enum) (\w+): ExplainedError/) {
        names[String(path.split(separator: "/")[1]), default: []].insert(String(match.1))
      }
    }
    return names
  }

  @Test("The page lists every error type of each part, and no others")
  func errors() throws {
    let page = try String(contentsOf: Repository.root.appending(path: "docs/Architecture.md"), encoding: .utf8)
    let section = try #require(
      page.components(separatedBy: "\n## Errors\n").last?.components(separatedBy: "\n## ").first)
    var listed: [String: Set<String>] = [:]
    for row in section.split(separator: "\n") {
      let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      guard cells.count == 2, !cells[1].hasPrefix("none"), cells[0] != "keyhaul" else { continue }
      let names = Set(cells[1].matches(of: /`(\w+)`/).map { String($0.1) })
      let target = cells[0].prefix { $0 != "," }
      if !names.isEmpty { listed[String(target)] = names }
    }
    let declared = try Self.declaredErrorTypes()
    #expect(declared.count == 7 && declared.values.reduce(0) { $0 + $1.count } == 9)
    #expect(listed == declared)
  }

  @Test("The page follows one command through functions that exist")
  func walkthrough() throws {
    let page = try String(contentsOf: Repository.root.appending(path: "docs/Architecture.md"), encoding: .utf8)
    let section = try #require(
      page.components(separatedBy: "\n## One command, walked\n").last?.components(separatedBy: "\n## ").first)
    let steps = section.matches(of: /(?m)^\| `([^`]+\.swift)` \| `(\w+)` \|/).map { (String($0.1), String($0.2)) }
    #expect(steps.count == 15)
    let sources = Repository.root.appending(path: "Sources")
    let paths = try FileManager.default.subpathsOfDirectory(atPath: sources.path)
      .filter { $0.hasPrefix("CommandLine/") }
    for (file, function) in steps {
      let path = try #require(paths.first { $0.hasSuffix("/" + file) }, "\(file)")
      let text = try String(contentsOf: sources.appending(path: path), encoding: .utf8)
      #expect(text.contains("func \(function)(") || text.contains("func \(function)<"), "\(file): \(function)")
    }
  }
}
