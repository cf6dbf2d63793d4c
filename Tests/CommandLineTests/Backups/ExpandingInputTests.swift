import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Small backups with excessive contents")
struct ExpandingInputTests {
  /// A replacement for one file of a backup without a password.
  struct Trick: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let file: String
    let bytes: @Sendable (_ own: [UInt8]) -> [UInt8]
    /// The expected exit status of inspect; those of the other commands follow.
    let inspect: CommandExitStatus
    let verify: CommandExitStatus
    let restore: CommandExitStatus
    /// The expected message.
    let words: String

    /// A plan is made of what can be read of a damaged one.
    var plan: CommandExitStatus { restore == .damaged ? .partial : restore }
  }

  private static let keychain = "51/51a4616e576dd33cd2abadfea874eb8ff246bf0e"

  static let tricks: [Trick] = [
    Trick(
      testDescription: "Info.plist of nested arrays", file: "Info.plist", bytes: { _ in CostlyPlists.nestedArrays },
      inspect: .ok, verify: .refused, restore: .ok, words: "Info.plist could not be read"),
    Trick(
      testDescription: "Status.plist of nested arrays", file: "Status.plist", bytes: { _ in CostlyPlists.nestedArrays },
      inspect: .ok, verify: .refused, restore: .refused, words: "Status.plist"),
    Trick(
      testDescription: "Manifest.plist of nested arrays", file: "Manifest.plist",
      bytes: { _ in CostlyPlists.nestedArrays }, inspect: .refused, verify: .refused, restore: .refused,
      words: "shared values"),
    Trick(
      testDescription: "Info.plist of twenty million elements", file: "Info.plist",
      bytes: { _ in CostlyPlists.manyElements(20_000_000) }, inspect: .ok, verify: .refused, restore: .ok,
      words: "Info.plist could not be read"),
    Trick(
      testDescription: "a cut Info.plist", file: "Info.plist", bytes: { $0.dropLast(40) }, inspect: .ok,
      verify: .damaged, restore: .ok, words: "Info.plist could not be read"),
    Trick(
      testDescription: "a cut Status.plist", file: "Status.plist", bytes: { $0.dropLast(40) }, inspect: .ok,
      verify: .damaged, restore: .damaged, words: "Status.plist"),
    Trick(
      testDescription: "190,000 items that share one blob", file: keychain,
      bytes: { _ in CostlyPlists.sharedBlob(entries: 190_000, blob: [UInt8](repeating: 7, count: 64 << 10)) },
      inspect: .refused, verify: .refused, restore: .refused, words: "its items share bytes"),
  ]

  /// Memory that the program may take, in kibibytes: a few times what it has mapped before its first line.
  private static let memory = 1_500_000

  @Test("A costly backup is read, checked and restored within 1.5 GB of memory, or rejected", arguments: tricks)
  func trick(trick: Trick) throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o b/ --no-password -q --yes")
    try sandbox.write(trick.bytes(try sandbox.read("b/\(trick.file)")), to: "b/\(trick.file)")
    let before = try sandbox.contents(of: "old-phone")
    for (verb, status) in [
      ("inspect b/ --list", trick.inspect), ("verify b/", trick.verify),
      ("plan b/ --to old-phone", trick.plan), ("restore b/ --to old-phone --yes", trick.restore),
    ] {
      let outcome = try sandbox.devices.run("ulimit -v \(Self.memory); keyhaul \(verb)")
      #expect(outcome.status == status.code, "\(verb): \(outcome)")
      if verb != "verify b/" { #expect(words(of: outcome).contains(trick.words), "\(verb): \(outcome)") }
    }
    if trick.restore != .ok { #expect(try sandbox.contents(of: "old-phone") == before) }
  }

  /// Returns the messages as one line.
  private func words(of outcome: BuiltProgram.Outcome) -> String {
    outcome.errors.split { $0.isWhitespace }.joined(separator: " ")
  }

  @Test("A sparse file of 40 GB is rejected, or the backup is read without it")
  func sparse() throws {
    for (name, status) in [
      ("Info.plist", CommandExitStatus.partial), ("Status.plist", .partial), ("Manifest.plist", .refused),
      ("Manifest.db", .refused),
      (Self.keychain, .refused),
    ] {
      let sandbox = try PhoneSandbox()
      try sandbox.backUp(to: "b/")
      let url = sandbox.home.appending(path: "b/\(name)")
      let file = try FileHandle(forWritingTo: url)
      try file.truncate(atOffset: 40 << 30)
      try file.close()
      let outcome = try sandbox.devices.run("ulimit -v \(Self.memory); keyhaul inspect b/ --password-file .bp")
      #expect(outcome.status == status.code, "\(name): \(outcome)")
      #expect(words(of: outcome).contains("\(name) has 42,949,672,960 bytes (limit: "), "\(name): \(outcome)")
    }
  }
}
