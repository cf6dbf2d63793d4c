import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

@Suite("One-time passwords in plans")
struct OneTimePasswordPlanTests {
  private static let passwordFlag = "--password-file .bp"

  @Test("The plan of an encrypted backup offers to save one-time passwords, and fits on a screen")
  func encrypted() throws {
    let sandbox = try IPhoneBackups.sandbox()
    let text = try sandbox.succeed("plan encrypted/ \(Self.passwordFlag)")
    #expect(
      unwrapped(text).contains(
        "[ ] Save 1 one-time password of org.example.authenticator; it also moves. "
          + "keyhaul export encrypted/ --reveal -o codes.qr.html"), "\(text)")
    // At most 25 lines. The last part is empty, because the text ends with a line break.
    #expect(text.split(separator: "\n", omittingEmptySubsequences: false).count <= 26)
    // The command that the plan shows works.
    try sandbox.succeed("export encrypted/ --reveal -o codes.qr.html \(Self.passwordFlag)")
    #expect(try sandbox.devices.permissions(of: "codes.qr.html") == 0o600)
  }

  private static let step = "Save 1 one-time password of org.example.authenticator; it also moves."

  @Test("A plan for a device offers to save the one-time passwords of a backup, in text and as a page")
  func target() throws {
    let sandbox = try IPhoneBackups.sandbox()
    let line = "plan encrypted/ --to new-phone \(Self.passwordFlag)"
    #expect(
      try sandbox.succeed(line).contains("\n\(Self.step)\n  keyhaul export encrypted/ --reveal -o codes.qr.html\n"))
    let page = try sandbox.succeed("\(line) --format html -o -")
    #expect(page.contains("<p>\(Self.step)</p>") && page.contains("codes.qr.html"))
    let redacted = try sandbox.succeed("\(line) --redact")
    #expect(redacted.contains("\nSave 1 one-time password; it also moves.\n  keyhaul export ARCHIVE "), "\(redacted)")
    // The document of a plan for a device does not count one-time passwords.
    #expect(try sandbox.object(sandbox.succeed("\(line) --json"))["one_time_passwords"] == nil)
  }

  @Test("A plan counts the one-time passwords of a backup from a stream, but offers no command to save them")
  func stream() throws {
    let sandbox = try IPhoneBackups.sandbox()
    try sandbox.devices.run("tar -cf b.tar encrypted")
    for target in ["", "--to new-phone"] {
      let outcome = try sandbox.devices.run("keyhaul plan - \(target) \(Self.passwordFlag) < b.tar")
      #expect(outcome.status == 0 && outcome.output.contains(Self.step), "\(outcome)")
      #expect(!outcome.output.contains("codes.qr.html"), "\(outcome)")
    }
  }

  @Test(
    "The plan of a virtual device offers the codes of its items, with a command that works",
    arguments: ["", "--to new-phone"])
  func device(target: String) throws {
    let sandbox = try PhoneSandbox()
    let text = unwrapped(try sandbox.succeed("plan old-phone \(target)"))
    #expect(
      text.contains("Save 1 one-time password of authenticator; it also moves. keyhaul export old-phone --reveal"),
      "\(text)")
    try sandbox.succeed("export old-phone --reveal -o codes.qr.html")
    let withoutPassword = unwrapped(try sandbox.succeed("plan old-phone \(target) --no-password"))
    #expect(
      withoutPassword.contains("Save 1 one-time password of authenticator; it does not move."), "\(withoutPassword)")
  }

  @Test("Each authenticator app has one entry in the checklist, whether or not its codes can be saved")
  func once() throws {
    let sandbox = try IPhoneBackups.sandbox()
    try IPhoneBackups.setApps(
      [
        ("org.example.authenticator", "Example Authenticator", 6002),
        ("com.google.Authenticator", "Google Authenticator", 6002),
      ],
      in: "encrypted", of: sandbox)
    for flags in ["", "-v"] {
      let text = unwrapped(try sandbox.succeed("plan encrypted/ \(Self.passwordFlag) \(flags)"))
      #expect(text.components(separatedBy: "Example Authenticator").count == 2, "\(text)")
      #expect(text.contains("[ ] Save 1 one-time password of Example Authenticator; it also moves."), "\(text)")
      let entries = text.components(separatedBy: "[ ] ").filter { $0.hasPrefix("Google Authenticator") }
      #expect(entries.count == 1, "\(entries)")
    }
  }

  @Test("The document of a plan counts the one-time passwords, and names their apps unless the plan is redacted")
  func document() throws {
    let sandbox = try IPhoneBackups.sandbox()
    func oneTimePasswords(_ flags: String) throws -> JSONValue {
      let document = try sandbox.devices.document("keyhaul plan encrypted/ \(Self.passwordFlag) --json \(flags)")
      return try #require(document["one_time_passwords"])
    }
    let passwords = try oneTimePasswords("")
    #expect(passwords["count"] == 1 && passwords["moving"] == 1, "\(passwords)")
    #expect(passwords["apps"] == [["name": "org.example.authenticator", "count": 1, "moving": 1]], "\(passwords)")
    #expect(passwords["missing"]?.arrayValue?.first?["app"] == "google-authenticator")
    #expect(try oneTimePasswords("--redact") == ["count": 1, "moving": 1, "apps": [], "missing": []])
  }

  @Test("The plan of an unencrypted backup names apps whose codes cannot be saved, and offers no page")
  func unencrypted() throws {
    let sandbox = try IPhoneBackups.sandbox()
    let text = try sandbox.succeed("plan plain/")
    #expect(!text.contains("codes.qr.html") && text.contains("[ ] Google Authenticator: Export the codes.\n"))
    let verbose = unwrapped(try sandbox.succeed("plan plain/ -v"))
    #expect(verbose.contains("Google Authenticator is installed; its makers do not publish how it stores its codes."))
  }
}
