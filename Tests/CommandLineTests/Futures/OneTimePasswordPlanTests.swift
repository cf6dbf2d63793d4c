import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

@Suite("One-time passwords in the answer of plan")
struct OneTimePasswordPlanTests {
  private static let password = "--password-file .bp"

  @Test("The plan of an encrypted backup offers to save the one-time passwords, and fits on a screen")
  func encrypted() throws {
    let world = try IPhoneBackups.world()
    let text = try world.succeed("plan encrypted/ \(Self.password)")
    #expect(
      flat(text).contains(
        "[ ] Save 1 one-time password of org.example.authenticator; it also moves. "
          + "keyhaul export encrypted/ --reveal -o codes.qr.html"), "\(text)")
    #expect(text.split(separator: "\n", omittingEmptySubsequences: false).count <= 26)
    // The command that it shows works as it stands.
    try world.succeed("export encrypted/ --reveal -o codes.qr.html \(Self.password)")
    #expect(try world.devices.permissions(of: "codes.qr.html") == 0o600)
  }

  @Test("The document of a plan counts the one-time passwords, and names their apps unless names are left out")
  func document() throws {
    let world = try IPhoneBackups.world()
    let value = try world.devices.document("keyhaul plan encrypted/ \(Self.password) --json")["one_time_passwords"]
    #expect(
      value?["count"] == 1 && value?["moving"] == 1
        && value?["apps"] == [["name": "org.example.authenticator", "count": 1, "moving": 1]],
      "\(String(describing: value))")
    #expect(value?["missing"]?.arrayValue?.first?["app"] == "google-authenticator")
    let redacted = try world.devices.document(
      "keyhaul plan encrypted/ \(Self.password) --redact --json")["one_time_passwords"]
    #expect(redacted == ["count": 1, "moving": 1, "apps": [], "missing": []])
  }

  @Test("The plan of a backup without a password names apps whose codes cannot be saved, and offers no page")
  func plain() throws {
    let world = try IPhoneBackups.world()
    let text = try world.succeed("plan plain/")
    #expect(!text.contains("codes.qr.html") && text.contains("[ ] Google Authenticator: Export the codes.\n"))
    let whole = flat(try world.succeed("plan plain/ -v"))
    #expect(whole.contains("Google Authenticator is installed; its makers do not publish how it stores its codes."))
  }
}
