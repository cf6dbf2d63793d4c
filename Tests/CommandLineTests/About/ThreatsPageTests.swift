import Foundation
import TestSupport
import Testing

/// A promise without a test is a wish: each row of the page about threats names the suites that show it.
@Suite("The page about threats")
struct ThreatsPageTests {
  private static func page() throws -> String {
    try String(contentsOf: Repository.root.appending(path: "docs/Threats.md"), encoding: .utf8)
  }

  private static func rows(of section: String) throws -> [String] {
    let text = try #require(try page().components(separatedBy: "\n## \(section)\n").dropFirst().first)
    return text.components(separatedBy: "\n## ")[0].split(separator: "\n").map(String.init)
      .filter { $0.hasPrefix("| ") && !$0.hasPrefix("| ---") }.dropFirst().map { $0 }
  }

  @Test("names for every guarantee suites that there are, each in the file that its link leads to")
  func guarantees() throws {
    let rows = try Self.rows(of: "What is kept, and by what")
    #expect(rows.count >= 11)
    for row in rows {
      let links = row.matches(of: /\[(\w+)\]\((\.\.\/Tests\/[^)]+)\)/)
      #expect(!links.isEmpty, "no test: \(row)")
      for link in links {
        let file = Repository.root.appending(path: "docs/\(link.2)").standardized
        let text = try #require(try? String(contentsOf: file, encoding: .utf8), "\(link.2) is not there")
        #expect(text.contains("struct \(link.1)") && text.contains("@Test"), "\(link.1) is no suite of \(link.2)")
      }
    }
  }

  @Test("names for every figure a command that there is")
  func figures() throws {
    let makefile = try String(contentsOf: Repository.root.appending(path: "Makefile"), encoding: .utf8)
    let rows = try Self.rows(of: "What was measured")
    #expect(rows.count >= 20)
    for row in rows {
      let targets = row.matches(of: /`make ([a-z-]+)/)
      #expect(!targets.isEmpty, "no command: \(row)")
      for target in targets {
        #expect(makefile.contains("\n\(target.1):"), "make \(target.1) is no target")
      }
    }
  }
}
