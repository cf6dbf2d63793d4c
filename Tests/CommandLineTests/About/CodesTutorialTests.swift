import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("The authenticator codes tutorial")
struct CodesTutorialTests {
  @Test("The commands of the tutorial about codes print what the tutorial shows")
  func commands() throws {
    let page = Repository.root.appending(path: "docs/Tutorials/SaveYourCodes.md")
    let text = try String(contentsOf: page, encoding: .utf8)
    let blocks = text.components(separatedBy: "```console\n").dropFirst()
    let listing = try #require(blocks.first?.components(separatedBy: "\n```").first)
    #expect(blocks.count == 1)
    let script = SessionScript(listing)
    #expect(script.steps.count == 7)
    let sandbox = try DeviceSandbox()
    for step in script.steps {
      let outcome = try sandbox.run("{ \(step.command); } 2>&1")
      #expect(outcome.status == 0, "\(step.command)")
      // The page wraps long lines.
      let printed = outcome.output.split(whereSeparator: \.isWhitespace)
      let shown = step.output.joined(separator: " ").split(whereSeparator: \.isWhitespace)
      #expect(printed == shown, "\(step.command):\n\(outcome.output)")
    }
    // The page is gone at the end, as the tutorial says.
    #expect(!FileManager.default.fileExists(atPath: sandbox.home.appending(path: "codes.html").path))
  }
}
