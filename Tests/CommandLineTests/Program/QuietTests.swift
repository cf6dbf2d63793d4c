import Foundation
import TestSupport
import Testing

@testable import keyhaul

/// The messages that `-q` does not suppress.
@Suite("Warnings with -q")
struct QuietTests {
  private static let password = "--password-file .bp"

  private func sandbox() throws -> PhoneSandbox {
    let sandbox = try PhoneSandbox(named: "a sealed backup") { sandbox in try sandbox.backUp(to: "b/") }
    return sandbox
  }

  @Test(
    "Notes, and warnings about a backup that may be incomplete, are left out", arguments: ["plan", "verify", "inspect"])
  func silent(verb: String) throws {
    let sandbox = try sandbox()
    try sandbox.devices.run("rm b/Status.plist b/Keyhaul.seal")
    // Every count of iterations is doubted without a seal.
    try sandbox.setIterations(10_000_000, in: "DPIC", of: "b")
    try sandbox.setIterations(10_000, in: "ITER", of: "b")
    let line = verb == "inspect" ? "inspect b" : "verify b --quick"
    let outcome = try sandbox.keyhaul("\(line) -q")
    #expect(outcome.errors.isEmpty && !outcome.output.isEmpty, "\(outcome)")
  }

  @Test(
    "A backup that differs from its seal is never reported without a warning",
    arguments: ["plan", "inspect --list", "plan --to new-phone"])
  func seal(verb: String) throws {
    let sandbox = try sandbox()
    try sandbox.devices.run("echo >> b/Info.plist")
    let parts = verb.split(separator: " ", maxSplits: 1).map(String.init)
    let line = "\(parts[0]) b \(parts.dropFirst().joined()) \(Self.password)"
    let loud = try sandbox.keyhaul(line)
    let quiet = try sandbox.keyhaul("\(line) -q")
    #expect(quiet.errors.hasPrefix("warning: b has changed since it was sealed\n"), "\(quiet)")
    #expect(quiet.output == loud.output && quiet.status == 3, "\(quiet)")
    // Without a seal that fits, the iterations are doubted too.
    let warnings = quiet.errors.split(separator: "\n").filter { $0.hasPrefix("warning: ") }
    #expect(warnings.dropFirst().allSatisfy { $0.hasPrefix("warning: b asks for ") }, "\(quiet.errors)")
  }

  @Test("The help of -q says which warnings remain")
  func help() throws {
    let help = unwrapped(try sandbox().succeed("plan --help"))
    #expect(
      help.contains("Print only results, errors, and warnings about data that was left out or cannot be trusted."))
  }
}
