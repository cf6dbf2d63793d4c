import Foundation
import TestSupport
import Testing

@Suite("The threats page")
struct ThreatsPageTests {
  private static func page() throws -> String {
    try String(contentsOf: Repository.root.appending(path: "docs/Threats.md"), encoding: .utf8)
  }

  /// Returns the rows of the table in a section, without its titles.
  private static func rows(of section: String) throws -> [String] {
    let textFromSection = try #require(try page().components(separatedBy: "\n## \(section)\n").dropFirst().first)
    let lines = textFromSection.components(separatedBy: "\n## ")[0].split(separator: "\n").map(String.init)
    let titlesAndRows = lines.filter { $0.hasPrefix("| ") && !$0.hasPrefix("| ---") }
    return Array(titlesAndRows.dropFirst())
  }

  @Test("The page names at least one suite for every guarantee, and each suite exists in the linked file")
  func guarantees() throws {
    let rows = try Self.rows(of: "Guarantees")
    // Fewer rows would mean that the search no longer finds them.
    #expect(rows.count >= 11)
    for row in rows {
      let links = row.matches(of: /\[(\w+)\]\((\.\.\/Tests\/[^)]+)\)/)
      #expect(!links.isEmpty, "no test: \(row)")
      for link in links {
        let file = Repository.root.appending(path: "docs/\(link.2)").standardized
        let text = try #require(try? String(contentsOf: file, encoding: .utf8), "\(link.2) is missing")
        let names = text.matches(of: /\b(?:struct|class) (\w+)/).map { String($0.1) }
        #expect(names.contains(String(link.1)) && text.contains("@Test"), "\(link.1) is not a suite in \(link.2)")
      }
    }
  }

  @Test("Every link on the page leads to an existing file and heading")
  func links() throws {
    let links = try Self.page().matches(of: /\]\(([^)\s]+)\)/).map { String($0.1) }
    // Fewer links would mean that the search no longer finds them.
    #expect(links.count > 40)
    for link in links where !link.hasPrefix("https://") {
      let parts = link.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      let path = parts[0].isEmpty ? "Threats.md" : parts[0]
      let file = Repository.root.appending(path: "docs/\(path)").standardized
      let text = try #require(try? String(contentsOf: file, encoding: .utf8), "\(link): no such file")
      guard parts.count == 2 else { continue }
      #expect(Self.anchors(of: text).contains(parts[1]), "\(link): no such heading")
    }
  }

  /// Returns the anchors that GitHub gives to headings: lowercase, with hyphens for spaces and no other punctuation.
  private static func anchors(of text: String) -> Set<String> {
    let headings = text.split(separator: "\n").filter { $0.hasPrefix("#") }.map { $0.drop { "# ".contains($0) } }
    return Set(
      headings.map { heading in
        heading.lowercased().replacing(" ", with: "-")
          .filter { $0.isLetter || $0.isNumber || $0 == "-" || $0 == "_" }
      })
  }

  @Test("Every figure names a make target that exists")
  func figures() throws {
    let rows = try Self.rows(of: "What was measured")
    // Fewer rows would mean that the search no longer finds them.
    #expect(rows.count >= 20)
    for row in rows {
      let targets = row.matches(of: /`make (?:-C ([A-Za-z]+) )?([a-z-]+)/)
      #expect(!targets.isEmpty, "no command: \(row)")
      for target in targets {
        let file = target.1.map { "\($0)/Makefile" } ?? "Makefile"
        let makefile = try String(contentsOf: Repository.root.appending(path: file), encoding: .utf8)
        #expect(makefile.contains("\n\(target.2):"), "\(file) has no target \(target.2)")
      }
    }
  }
}
