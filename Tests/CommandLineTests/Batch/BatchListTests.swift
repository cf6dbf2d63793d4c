import ArgumentParser
import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Lists of results for many backups")
struct BatchListTests {
  @Test("A document that is too large for a list is left out, with a warning")
  func large() throws {
    let sandbox = try PhoneSandbox(named: "a large result") { try $0.backUp("new-phone", to: "one.tar") }
    let queued = QueuedBackup(sandbox.devices.home.appending(path: "one.tar").path)
    var worker = BatchWorker(
      command: try Inspect.parse([queued.path]), commandName: "keyhaul inspect", verb: "inspect",
      environment: ["HOME": sandbox.devices.home.path], parameters: [],
      passwords: BatchPasswords(common: nil, list: nil))
    let withDocument = worker.result(for: queued, resumingFrom: nil).result
    #expect(withDocument.code == 0 && withDocument.document != nil && withDocument.warnings.isEmpty, "\(withDocument)")
    worker.maximumValueCount = 10
    let withoutDocument = worker.result(for: queued, resumingFrom: nil).result
    #expect(withoutDocument.code == 0 && withoutDocument.document == nil && withoutDocument.error == nil)
    #expect(withoutDocument.warnings.map(\.message) == ["its result is left out here"])
    #expect(withoutDocument.warnings.first?.advice == "keyhaul inspect \(queued.path)")
  }

  @Test(
    "The suggested command for one backup has the flags that select its contents",
    arguments: [
      ("inspect shelf --list --password-file .bp", "inspect shelf/a.tar --list"),
      ("verify shelf --quick", "verify shelf/a.tar --quick"),
      ("plan shelf --by-app --password-file .bp", "plan shelf/a.tar --by-app"),
      ("plan shelf --to new-phone --compare --password-file .bp", "plan shelf/a.tar --to new-phone --compare"),
    ])
  func inFull(line: String, suggestion: String) throws {
    let sandbox = try sandbox()
    let outcome = try sandbox.keyhaul(line)
    #expect(
      outcome.status == 0 && outcome.output.hasSuffix("\nOne of them in full: keyhaul \(suggestion)\n"), "\(outcome)")
  }

  @Test(
    "Contradicting flags are rejected once, before any backup is read",
    arguments: [
      ("verify shelf --quick --password-file .bp", "--quick and a password cannot be used together"),
      ("plan shelf --to new-phone --password-file .bp -o move.plan", "-o saves the plan of one backup"),
    ])
  func refused(line: String, message: String) throws {
    let sandbox = try sandbox()
    let outcome = try sandbox.keyhaul(line)
    #expect(outcome.status == 64 && outcome.output.isEmpty, "\(outcome)")
    #expect(outcome.errors.contains("error: \(message)\n"), "\(outcome)")
    // With --format, -o saves the list of results, which is allowed.
    #expect(try sandbox.keyhaul("plan shelf --password-file .bp --format text -o results.txt").status == 0)
  }

  @Test("An argument that is not a file is reported by its number and not repeated")
  func argumentNumber() throws {
    let outcome = try sandbox().keyhaul("verify shelf/a.tar shelf/b.tar hunter2 --password-file .bp")
    #expect(outcome.status == 64 && !outcome.errors.contains("hunter2"), "\(outcome)")
    #expect(outcome.errors.contains("it is number 3 of 3; Keyhaul does not repeat it here"), "\(outcome)")
  }

  /// Returns a sandbox with the backups `shelf/a.tar` and `shelf/b.tar`.
  private func sandbox() throws -> PhoneSandbox {
    try PhoneSandbox(named: "a shelf of two") { sandbox in
      try sandbox.backUp("new-phone", to: "a.tar")
      try sandbox.devices.run("mkdir shelf && mv a.tar shelf/ && cp shelf/a.tar shelf/b.tar")
    }
  }
}
