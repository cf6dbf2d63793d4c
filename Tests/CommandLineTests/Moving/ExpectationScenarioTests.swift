import Foundation
import Testing

@testable import keyhaul

@Suite("Expectations for the four restores")
struct ExpectationScenarioTests {
  @Test("A plan checks the expectations for its own restore, and counts the expectations for other restores")
  func plan() throws {
    let expectations = try ExpectationSandbox(ExpectationSandbox.fourScenarios)
    let withPassword = try expectations.check()
    #expect(
      withPassword.output
        == "2 of 2 expectations met; 2 more are for other restores and were not checked "
        + "(plan --compare checks all four restores).\n"
        && withPassword.status == 0, "\(withPassword)")
    let withoutPassword = try expectations.check("--no-password")
    #expect(
      withoutPassword.output.hasPrefix("2 of 2 expectations met; 2 more are for other restores"), "\(withoutPassword)")
    let document = try expectations.sandbox.object(expectations.check("--json").output)
    #expect(document["expectations"] as? Int == 4 && document["checked"] as? Int == 2)
    #expect(document["met"] as? Int == 2 && document["unchecked"] as? [Int] == [1, 3])
    // A plan of a backup gives the same result. The keybag shows that the backup has a password.
    try expectations.sandbox.backUp(to: "b.tar")
    let backupCheck = try expectations.check("--password-file .bp", of: "b.tar")
    #expect(
      backupCheck.status == 0 && backupCheck.output.contains("2 of 2 expectations met; 2 more are for"),
      "\(backupCheck)")
  }

  @Test("A comparison checks each expectation in every restore to which the expectation applies")
  func compared() throws {
    let expectations = try ExpectationSandbox(ExpectationSandbox.fourScenarios)
    let met = try expectations.check("--compare")
    #expect(met == .init(output: "4 of 4 expectations met.\n", errors: "", status: 0), "\(met)")
    let document = try expectations.sandbox.object(expectations.check("--compare --json").output)
    let restores = try #require(document["settings"] as? [[String: Any]])
    // With a password: same device, other device. Without a password: same device, other device.
    #expect(restores.map { $0["checked"] as? Int } == [2, 2, 1, 2])
    #expect(restores.map { $0["password"] as? Bool } == [true, true, false, false])
  }

  @Test("A comparison names the restores in which an expectation is missed")
  func missedInComparison() throws {
    let expectations = try ExpectationSandbox(#"{"account": "push token", "expect": "migrates"}"#)
    let outcome = try expectations.check("--compare")
    #expect(outcome.status == 2)
    #expect(
      outcome.output == """
        missed: with a password, to another device: generic password "chat.example · push token": expected migrates, \
        the comparison says stays-behind (device-bound)
        missed: without a password, to another device: generic password "chat.example · push token": expected migrates, \
        the comparison says stays-behind (device-bound)
        0 of 1 expectation met.

        """, "\(outcome.output)")
    let document = try expectations.sandbox.object(expectations.check("--compare --json").output)
    let misses = try #require(document["misses"] as? [[String: Any]])
    #expect(misses.compactMap { ($0["setting"] as? [String: Any])?["same_device"] as? Bool } == [false, false])
  }

  @Test("A run that checks no expectation fails", arguments: ["", "--json", "--format junit"])
  func nothing(flags: String) throws {
    let expectations = try ExpectationSandbox(#"{"account": "push token", "expect": "migrates", "same_device": true}"#)
    let outcome = try expectations.check("\(flags) -o saved")
    #expect(outcome.status == 64 && outcome.output == "", "\(outcome)")
    #expect(outcome.errors.contains("no expectation applies to this restore"), "\(outcome.errors)")
    #expect(try !expectations.sandbox.names().contains("saved"))
    #expect(try expectations.check("--compare").status == 0)
  }

  @Test("An expectation about the same device is not checked if no item shows whether the target is the source device")
  func unproven() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("device create plain-app -q")
    try sandbox.devices.run("printf x | keyhaul item add plain-app --service s --account token --secret-file - -q")
    try sandbox.backUp("plain-app", to: "b.tar")
    let expectations = try ExpectationSandbox(
      #"{"account": "token", "expect": "migrates", "same_device": false}"#, in: sandbox)
    let outcome = try expectations.check("--password-file .bp", of: "b.tar")
    #expect(outcome.status == 64, "\(outcome)")
    #expect(
      unwrapped(outcome.errors).contains("with a password, to a device that may be the same or another one"),
      "\(outcome)")
  }

  @Test("Flags that do not apply to expectations are rejected")
  func usage() throws {
    let expectations = try ExpectationSandbox(ExpectationSandbox.fourScenarios)
    for flags in ["--by-app", "--audit", "--redact", "--format html", "--compare --format html", "--compare -o p"] {
      #expect(try expectations.check(flags).status == 64, "\(flags)")
    }
    #expect(try expectations.sandbox.keyhaul("plan old-phone --to new-phone --format junit").status == 64)
    #expect(try expectations.sandbox.keyhaul("inspect old-phone --format junit").status == 64)
  }
}
