import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("The page for scripts")
struct ScriptingPageTests {
  @Test("has every exit code with its id, in order, and none that there is not")
  func exitCodes() throws {
    let page = try String(contentsOf: Repository.root.appending(path: "docs/Scripting.md"), encoding: .utf8)
    let rows = page.matches(of: /(?m)^\| ([0-9]+) \| `([a-z-]+)` \|/).map { "\($0.1) \($0.2)" }
    #expect(rows == CommandStatus.fixed.map { "\($0.code) \($0.id)" })
    #expect(page.contains("| 128 + n | `\(CommandStatus.signal(15).id)` |"))
  }
}
