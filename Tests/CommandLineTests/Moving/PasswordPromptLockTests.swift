import Foundation
import Testing

@testable import keyhaul

/// A password command simulates a user who types slowly: while it runs, another process uses the devices.
@Suite("Waiting for a password")
struct PasswordPromptLockTests {
  @Test(
    "Other processes can change the devices while Keyhaul waits for a password",
    arguments: [
      "plan b.tar --to new-phone", "plan b.tar --source old-phone", "why b.tar --account anna --to new-phone",
    ])
  func unlockedDevices(line: String) throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let script = """
      printf x | keyhaul item add new-phone --service later --account me --secret-file - -q --wait 0 && \
      printf x | keyhaul item add old-phone --service later --account me --secret-file - -q --wait 0 && cat .bp
      """
    try sandbox.write(Array(script.utf8), to: "ask.sh")
    let outcome = try sandbox.keyhaul("\(line) --password-command 'sh ask.sh'")
    #expect(outcome.status == 0, "\(outcome)")
    for phone in ["new-phone", "old-phone"] {
      #expect(try sandbox.succeed("item find \(phone) --service later").contains("later"))
    }
  }

  @Test("The plan is made for the target's state after the password was typed")
  func currentPlan() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b.tar")
    let deviceBefore = try sandbox.object(sandbox.succeed("device show new-phone --json"))
    try sandbox.write(
      Array("printf x | keyhaul item add new-phone --service later --account me --secret-file - -q && cat .bp".utf8),
      to: "ask.sh")
    let plan = try sandbox.object(
      sandbox.succeed("plan b.tar --to new-phone --password-command 'sh ask.sh' --json"))
    let target = try #require(plan["target"] as? [String: Any])
    #expect(target["revision"] as? String != deviceBefore["revision"] as? String)
    let removed = try #require(plan["removed"] as? [[String: Any]])
    #expect(removed.contains { $0["service"] as? String == "later" })
  }
}
