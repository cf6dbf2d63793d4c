import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("The authenticator codes tutorial")
struct CodesTutorialTests {
  @Test("The commands of the tutorial about codes print what the tutorial shows")
  func commands() throws {
    let tutorial = Repository.root.appending(path: "docs/Tutorials/SaveYourCodes.md")
    let text = try String(contentsOf: tutorial, encoding: .utf8)
    let blocks = text.components(separatedBy: "```console\n").dropFirst()
    #expect(blocks.count == 1)
    let session = try #require(blocks.first?.components(separatedBy: "\n```").first)
    let script = SessionScript(session)
    #expect(script.steps.count == 7)
    let sandbox = try DeviceSandbox()
    for step in script.steps {
      let outcome = try sandbox.run("{ \(step.command); } 2>&1")
      #expect(outcome.status == 0, "\(step.command)")
      // The tutorial wraps long lines.
      let expectedOutput = unwrapped(step.output.joined(separator: " "))
      #expect(unwrapped(outcome.output) == expectedOutput, "\(step.command):\n\(outcome.output)")
    }
    // The last step deletes the page with the codes.
    #expect(!FileManager.default.fileExists(atPath: sandbox.home.appending(path: "codes.html").path))
  }
}
