import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Commands without HOME")
struct MissingHomeTests {
  private let sandbox: PhoneSandbox

  init() throws {
    sandbox = try PhoneSandbox()
    try sandbox.backUp(to: "b/")
    try sandbox.backUp(to: "b.tar")
    // The new password. The password of the backups is in `.bp`.
    try sandbox.write(Array("battery staple\n".utf8), to: ".np")
  }

  private func run(_ line: String) throws -> BuiltProgram.Outcome {
    try sandbox.devices.run("env -u HOME -u XDG_DATA_HOME -u KEYHAUL_HOME keyhaul \(line)")
  }

  @Test("Commands work without HOME if they need no device, or if the device is given as a path")
  func commandsWithoutDeviceFolder() throws {
    for line in [
      "plan b --password-file .bp", "plan b.tar --password-file .bp", "plan b b.tar --password-file .bp",
      "verify b --password-file .bp", "verify b b.tar --password-file .bp", "inspect b",
      "inspect b.tar --list --password-file .bp", "item find b --password-file .bp --service chat.example",
      "export b -o - --password-file .bp", "diff b b.tar --password-file .bp --other-password-file .bp",
      "why b --service chat.example --password-file .bp", "convert b -o c.tar",
      "item add c.tar --service s --account a --access-group g --secret-file .np --password-file .bp",
      "item delete c.tar --service s --yes --password-file .bp",
      "rekey c.tar --password-file .bp --new-password-file .np", "seal c.tar --password-file .np",
      "explain", "help", "version", "completions bash",
      "device create ./phone --from new-phone", "plan b --to ./phone --password-file .bp",
      "backup ./phone -o d.tar --no-password", "device delete ./phone --confirm phone",
    ] {
      let outcome = try run(line)
      #expect(outcome.status == 0, "\(line): \(outcome)")
    }
  }

  @Test("Commands that need the device folder suggest --home if HOME is not set")
  func needed() throws {
    for line in ["device list", "plan b --to phone --password-file .bp", "device show phone", "backup phone -o d.tar"] {
      let outcome = try run(line)
      #expect(outcome.status == 64 || outcome.status == 10, "\(line): \(outcome)")
      #expect(
        outcome.errors.contains("HOME is not set") && outcome.errors.contains("--home DIR"), "\(line): \(outcome)")
    }
  }
}
