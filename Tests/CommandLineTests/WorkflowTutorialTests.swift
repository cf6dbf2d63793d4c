import Foundation
import Testing

@testable import keyhaul

@Suite("The tutorial about an app's migration")
struct WorkflowTutorialTests {
  private static func blocks(_ language: String) throws -> [String] {
    let page = URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../docs/Tutorials/TestYourAppsMigration.md")
    return try String(contentsOf: page, encoding: .utf8).components(separatedBy: "```\(language)\n").dropFirst()
      .compactMap { $0.components(separatedBy: "\n```").first }
  }

  @Test("has a workflow whose last step runs as it stands, with the list that is printed above it")
  func workflow() throws {
    let world = try DeviceWorld()
    let list = try #require(try Self.blocks("json").first)
    try Data(list.utf8).write(to: world.home.appending(path: "migration.json"))
    let workflow = try #require(try Self.blocks("yaml").first)
    let step = try #require(workflow.components(separatedBy: "run: |\n").last)
    let commands = step.split(separator: "\n").map { $0.drop { $0 == " " } }
    #expect(commands.count == 3)
    let outcome = try world.run("set -e\n" + commands.joined(separator: "\n"))
    #expect(outcome.status == 0 && outcome.output.hasSuffix("4 of 4 expectations met.\n"), "\(outcome)")
    // It can fail.
    let wrong = list.replacing("\"migrates\"", with: "\"stays-behind\"")
    try Data(wrong.utf8).write(to: world.home.appending(path: "migration.json"))
    #expect(try world.run(String(commands[2])).status == 2)
  }
}
