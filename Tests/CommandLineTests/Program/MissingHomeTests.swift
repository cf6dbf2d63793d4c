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
    try sandbox.write(Array("battery staple\n".utf8), to: ".np")
  }

  private func run(_ line: String) throws -> BuiltProgram.Outcome {
    try sandbox.devices.run("env -u HOME -u XDG_DATA_HOME -u KEYHAUL_HOME keyhaul \(line)")
  }

  @Test("Commands work without HOME if they need no device, or if the device is given as a path")
  func without() throws {
    for (line, status) in [
      ("plan b --password-file .bp", 0), ("plan b.tar --password-file .bp", 0), ("plan b b.tar --password-file .bp", 0),
      ("verify b --password-file .bp", 0), ("verify b b.tar --password-file .bp", 0), ("inspect b", 0),
      ("inspect b.tar --list --password-file .bp", 0), ("item find b --password-file .bp --service chat.example", 0),
      ("export b -o - --password-file .bp", 0), ("diff b b.tar --password-file .bp --other-password-file .bp", 0),
      ("why b --service chat.example --password-file .bp", 0), ("convert b -o c.tar", 0),
      ("item add c.tar --service s --account a --access-group g --secret-file .np --password-file .bp", 0),
      ("item delete c.tar --service s --yes --password-file .bp", 0),
      ("rekey c.tar --password-file .bp --new-password-file .np", 0), ("seal c.tar --password-file .np", 0),
      ("explain", 0), ("help", 0), ("version", 0), ("completions bash", 0),
      ("device create ./phone --from new-phone", 0), ("plan b --to ./phone --password-file .bp", 0),
      ("backup ./phone -o d.tar --no-password", 0), ("device delete ./phone --confirm phone", 0),
    ] {
      let outcome = try run(line)
      #expect(outcome.status == status, "\(line): \(outcome)")
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
