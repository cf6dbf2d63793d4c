import Foundation
import TestSupport
import Testing

@testable import keyhaul

/// The messages that `-q` does not suppress.
@Suite("Warnings with -q")
struct QuietTests {
  private static let passwordFlag = "--password-file .bp"

  private func sandbox() throws -> PhoneSandbox {
    try PhoneSandbox(named: "a sealed backup") { sandbox in try sandbox.backUp(to: "b/") }
  }

  @Test(
    "With -q, notes and warnings about a change that hides no data are left out",
    arguments: ["inspect b --list", "item find b", "why b --item 1"])
  func silent(command: String) throws {
    let sandbox = try sandbox()
    try sandbox.devices.run("echo more >> b/Manifest.db; rm b/Keyhaul.seal")
    let line = "\(command) \(Self.passwordFlag)"
    let normal = try sandbox.keyhaul(line)
    #expect(normal.errors.hasPrefix("warning: b has changed since the source device wrote it\n"), "\(normal)")
    #expect(
      normal.errors.hasSuffix("\nb: this-device-only items were decrypted with the key of old-phone\n"), "\(normal)")
    let quiet = try sandbox.keyhaul("\(line) -q")
    #expect(quiet.errors.isEmpty && quiet.output == normal.output && quiet.status == normal.status, "\(quiet)")
  }

  @Test(
    "A backup that differs from its seal is reported with a warning even with -q",
    arguments: ["plan b", "inspect b --list", "plan b --to new-phone"])
  func seal(command: String) throws {
    let sandbox = try sandbox()
    try sandbox.devices.run("echo >> b/Info.plist")
    let line = "\(command) \(Self.passwordFlag)"
    let normal = try sandbox.keyhaul(line)
    let quiet = try sandbox.keyhaul("\(line) -q")
    #expect(quiet.errors.hasPrefix("warning: b has changed since it was sealed\n"), "\(quiet)")
    #expect(quiet.output == normal.output && quiet.status == 3, "\(quiet)")
    // Without a matching seal, the iteration count may cause a warning too.
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
