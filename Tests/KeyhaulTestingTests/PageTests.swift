import Basics
import Foundation
import KeyhaulTesting
import TestSupport
import Testing

@Suite("Code and output on the documentation pages")
struct PageTests {
  private static func page(_ path: String) throws -> String {
    try String(contentsOf: Repository.root.appending(path: path), encoding: .utf8)
  }

  @Test("The ten-line test in the README and the tutorial equals the one that runs")
  func tenLines() throws {
    let test = try Self.page("Tests/KeyhaulTestingTests/TenLinesTests.swift")
    #expect(test.split(separator: "\n").count <= 10)
    #expect(try Self.page("README.md").contains("```swift\n\(test)```\n"))
    // The test on this page also imports the module of its app.
    let body = try #require(test.firstRange(of: "@Test").map { test[$0.lowerBound...] })
    #expect(try Self.page("docs/Tutorials/TestYourAppsMigration.md").contains("\(body)```\n"))
  }

  @Test("The output in the tutorial equals the output of a failed test")
  func failureOutput() throws {
    let phone = try Phone()
    try phone.run { SignIn.add("session token", "t", kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly) }
    let fate = try phone.move(to: .newPhone, backup: .encrypted)["session token"]
    #expect(try Self.page("docs/Tutorials/TestYourAppsMigration.md").contains("```text\n\(fate)\n```\n"))
  }
}
