import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("The app migration tutorial")
struct WorkflowTutorialTests {
  /// Returns the contents of the tutorial's code blocks in a language.
  private static func blocks(_ language: String) throws -> [String] {
    let url = Repository.root.appending(path: "docs/Tutorials/TestYourAppsMigration.md")
    let tutorial = try String(contentsOf: url, encoding: .utf8)
    let textsAfterOpeningFences = tutorial.components(separatedBy: "```\(language)\n").dropFirst()
    return textsAfterOpeningFences.compactMap { $0.components(separatedBy: "\n```").first }
  }

  @Test("The workflow's steps run in order, and its last step checks the tutorial's first file of expectations")
  func workflow() throws {
    let expectations = try #require(try Self.blocks("json").first)
    let workflow = try Workflow(try #require(try Self.blocks("yaml").first))
    let outcomes = try WorkflowRunner(workflow, repository: ["migration.json": expectations]).run()
    #expect(outcomes.allSatisfy { $0.status == 0 }, "\(outcomes)")
    #expect(try #require(outcomes.last).output.hasSuffix("4 of 4 expectations met.\n"), "\(outcomes)")
    // The workflow fails if an expectation is not met.
    let unmetExpectations = expectations.replacing("\"migrates\"", with: "\"stays-behind\"")
    let failed = try WorkflowRunner(workflow, repository: ["migration.json": unmetExpectations]).run()
    #expect(failed.last?.status == 2, "\(failed)")
  }

  @Test("If any step is left out, the workflow fails or checks no expectations")
  func everyStep() throws {
    let expectations = try #require(try Self.blocks("json").first)
    let workflow = try Workflow(try #require(try Self.blocks("yaml").first))
    #expect(workflow.steps.count == 5)
    for index in workflow.steps.indices {
      let outcomes = try WorkflowRunner(workflow.without(index), repository: ["migration.json": expectations]).run()
      let last = try #require(outcomes.last)
      #expect(last.status != 0 || !last.output.hasSuffix("expectations met.\n"), "without step \(index)")
    }
  }

  @Test("The workflow installs the apt packages that Package.swift names")
  func systemPackages() throws {
    let workflow = try Workflow(try #require(try Self.blocks("yaml").first))
    let root = Repository.root
    let manifest = try String(contentsOf: root.appending(path: "Package.swift"), encoding: .utf8)
    let requiredPackages = Set(manifest.matches(of: /\bapt: "([^"]+)"/).map { String($0.1) })
    #expect(requiredPackages.count == 4)
    let commands = workflow.steps.flatMap(\.commands)
    let updateIndex = try #require(commands.firstIndex(of: "apt-get update"))
    let installIndex = try #require(commands.firstIndex { $0.hasPrefix("apt-get install ") })
    let buildIndex = try #require(commands.firstIndex { $0.hasPrefix("swift build ") })
    // The container's image has no package lists, so they must be updated before the installation.
    #expect(updateIndex < installIndex && installIndex < buildIndex)
    let installedPackages = commands[installIndex].split(separator: " ").map(String.init)
    #expect(requiredPackages.isSubset(of: installedPackages))
    // A container runs as root.
    #expect(!commands.contains { $0.contains("sudo") })
  }

  @Test("The workflow builds an executable of Package.swift")
  func product() throws {
    let workflow = try Workflow(try #require(try Self.blocks("yaml").first))
    let commands = workflow.steps.flatMap(\.commands)
    let arguments = try #require(commands.first { $0.hasPrefix("swift build ") }).split(separator: " ")
    let flagIndex = try #require(arguments.firstIndex(of: "--product"))
    let product = try #require(arguments.dropFirst(flagIndex + 1).first)
    let manifest = try String(contentsOf: Repository.root.appending(path: "Package.swift"), encoding: .utf8)
    #expect(manifest.contains(".executable(name: \"\(product)\""))
  }

  @Test("A plan from a backup does not list items that never enter one, so it meets only \"absent\" for them")
  func backup() throws {
    let sandbox = try PhoneSandbox()
    let expectations = try #require(try Self.blocks("json").first)
    try sandbox.write(Array(expectations.utf8), to: "migration.json")
    try sandbox.backUp(to: "b.tar")
    let line = "plan b.tar --to new-phone --password-file .bp --expect migration.json"
    let outcome = try sandbox.keyhaul(line)
    #expect(outcome.status == 2 && outcome.output.hasSuffix("3 of 4 expectations met.\n"), "\(outcome)")
    #expect(
      outcome.output.contains(
        "account card *, access_group *.com.example.bank: expected stays-behind, but no item matches (a plan made "
          + "from a backup does not list items that no backup contains)\n"), "\(outcome.output)")
    let card = #""account": "card *", "expect": "stays-behind""#
    try #require(expectations.contains(card))
    let absentExpectations = expectations.replacing(card, with: #""account": "card *", "expect": "absent""#)
    try sandbox.write(Array(absentExpectations.utf8), to: "migration.json")
    #expect(try sandbox.succeed(line).hasSuffix("4 of 4 expectations met.\n"))
  }

  @Test("A plan checks only the expectations of its own restore, and plan --compare checks those of all four restores")
  func fourRestores() throws {
    let sandbox = try PhoneSandbox()
    let expectations = try #require(try Self.blocks("json").dropFirst().first)
    try sandbox.write(Array(expectations.utf8), to: "migration.json")
    let line = "plan old-phone --to new-phone --expect migration.json"
    #expect(try sandbox.succeed("\(line) --compare") == "4 of 4 expectations met.\n")
    #expect(try sandbox.succeed(line).hasPrefix("2 of 2 expectations met; 2 more are for other restores"))
    let unmetExpectations = expectations.replacing("\"same_device\": true", with: "\"same_device\": false")
    try sandbox.write(Array(unmetExpectations.utf8), to: "migration.json")
    #expect(try sandbox.keyhaul("\(line) --compare").status == 2)
  }

  @Test("The description creates a device with all items, and still creates a device without its optional members")
  func fixture() throws {
    let sandbox = try DeviceSandbox()
    let text = try #require(try Self.blocks("json").last)
    try Data(text.utf8).write(to: sandbox.home.appending(path: "app.json"))
    let created = try sandbox.run(
      "keyhaul device create app-phone --from app.json && keyhaul device create --from new-phone new")
    #expect(created.status == 0, "\(created)")
    // A line of titles and four items.
    let listing = try sandbox.run("keyhaul item find app-phone --format csv")
    #expect(listing.status == 0 && listing.output.split(separator: "\r\n").count == 5, "\(listing)")
    let plan = try sandbox.run("keyhaul plan app-phone --to new | tail -n 1")
    #expect(plan.output.hasPrefix("1 will move (1 new), 3 stay behind"), "\(plan)")
    let lines = text.split(separator: "\n")
    let requiredLines = lines.filter { !$0.contains("\"seed\"") && !$0.contains("\"apps\"") }
    #expect(requiredLines.count == lines.count - 2)
    try Data(requiredLines.joined(separator: "\n").utf8).write(to: sandbox.home.appending(path: "app.json"))
    #expect(try sandbox.run("keyhaul device create short --from app.json").status == 0)
    // The error names the members that are not optional.
    try Data("{}".utf8).write(to: sandbox.home.appending(path: "app.json"))
    let empty = try sandbox.run("keyhaul device create empty --from app.json")
    #expect(empty.status != 0 && empty.errors.contains("\"format\", \"created\", \"device\" and \"items\""), "\(empty)")
  }
}
