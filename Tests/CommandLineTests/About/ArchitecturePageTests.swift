import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("The architecture page")
struct ArchitecturePageTests {
  private static func page() throws -> String {
    try String(contentsOf: Repository.root.appending(path: "docs/Architecture.md"), encoding: .utf8)
  }

  /// Returns the text below a heading of the page, up to the next heading of the same level.
  private static func section(_ title: String) throws -> String {
    let parts = try page().components(separatedBy: "\n## \(title)\n")
    return try #require(parts.last?.components(separatedBy: "\n## ").first)
  }

  /// Returns the names of the public and package error types, by the part of the library that declares them.
  private static func declaredErrorTypes() throws -> [String: Set<String>] {
    let sources = Repository.root.appending(path: "Sources")
    var names: [String: Set<String>] = [:]
    for path in try FileManager.default.subpathsOfDirectory(atPath: sources.path) where path.hasSuffix(".swift") {
      let text = try String(contentsOf: sources.appending(path: path), encoding: .utf8)
      // A path is "Library/PART/…".
      let part = String(path.split(separator: "/")[1])
      for match in text.matches(of: /(?:public|package) (?:struct|enum) (\w+): ExplainedError/) {
        names[part, default: []].insert(String(match.1))
      }
    }
    return names
  }

  /// Returns the names of the error types that the page lists, by part. A row is "| PART, details | `Type` and `Type` |".
  private static func listedErrorTypes() throws -> [String: Set<String>] {
    var listed: [String: Set<String>] = [:]
    for row in try section("Errors").split(separator: "\n") {
      let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      // The row `keyhaul` is about the program, whose error type is not part of the library.
      guard cells.count == 2, !cells[1].hasPrefix("none"), cells[0] != "keyhaul" else { continue }
      let names = Set(cells[1].matches(of: /`(\w+)`/).map { String($0.1) })
      let part = cells[0].prefix { $0 != "," }
      if !names.isEmpty { listed[String(part)] = names }
    }
    return listed
  }

  @Test("The page lists exactly the error types that each part declares")
  func errors() throws {
    let declared = try Self.declaredErrorTypes()
    // Makes sure that the search finds all declarations.
    let typeCount = declared.values.reduce(0) { $0 + $1.count }
    #expect(declared.count == 7 && typeCount == 9)
    #expect(try Self.listedErrorTypes() == declared)
  }

  @Test("The page follows one command through functions that exist")
  func walkthrough() throws {
    let section = try Self.section("One command, walked")
    let steps = section.matches(of: /(?m)^\| `([^`]+\.swift)` \| `(\w+)` \|/).map { row in
      (file: String(row.1), function: String(row.2))
    }
    // Makes sure that every row of the table is found.
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
