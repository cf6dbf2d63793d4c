import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("The README's library example")
struct LibraryExampleTests {
  private static let file = "docs/Examples/BackupReport/main.swift"

  private static func text(_ path: String) throws -> String {
    try String(contentsOf: Repository.root.appending(path: path), encoding: .utf8)
  }

  @Test(
    "The pages show the program that is compiled",
    arguments: ["README.md", "Sources/Library/KeyhaulKit/KeyhaulKit.docc/KeyhaulKit.md"])
  func page(path: String) throws {
    #expect(try Self.text(path).contains("```swift\n\(Self.text(Self.file))```\n"))
  }

  @Test("The example prints what a new device gets, verifies the backup, and exports its passwords")
  func run() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b")
    let buildDirectory = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
    let outcome = try BuiltProgram(home: sandbox.home).run(
      command: buildDirectory.appending(path: "BackupReport").path, ["b"], input: "\(PhoneSandbox.password)\n")
    #expect(outcome.status == 0 && outcome.errors.isEmpty, "\(outcome)")
    let lines = outcome.output.split(separator: "\n")
    #expect(lines.contains { $0.hasSuffix(": migrates") } && lines.contains { $0.hasSuffix("(device-bound)") })
    #expect(lines.contains("verification: unproven, 0 faults") || lines.contains("verification: whole, 0 faults"))
    let lastLine = try #require(lines.last?.wholeMatch(of: /exported: (\d+) passwords/))
    let passwordCount = try #require(Int(lastLine.1))
    let csv = try String(contentsOf: sandbox.home.appending(path: "passwords.csv"), encoding: .utf8)
    // The first row has the column titles.
    #expect(passwordCount > 0 && csv.split(separator: "\r\n").count == 1 + passwordCount, "\(outcome)")
  }
}
