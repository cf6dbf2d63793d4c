import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("The scripting page")
struct ScriptingPageTests {
  @Test("The page lists exactly the existing exit codes, each with its id, in order")
  func exitCodes() throws {
    let page = try String(contentsOf: Repository.root.appending(path: "docs/Scripting.md"), encoding: .utf8)
    let rows = page.matches(of: /(?m)^\| ([0-9]+) \| `([a-z-]+)` \|/).map { "\($0.1) \($0.2)" }
    #expect(rows == CommandExitStatus.fixed.map { "\($0.code) \($0.id)" })
    #expect(page.contains("| 128 + n | `\(CommandExitStatus.signal(15).id)` |"))
  }
}
