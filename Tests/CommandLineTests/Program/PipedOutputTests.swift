import Foundation
import Testing

@testable import keyhaul

@Suite("Output in pipes and files")
struct PipedOutputTests {
  @Test("Text in a pipe or a file is never cut to a width")
  func complete() throws {
    let sandbox = try PhoneSandbox()
    let name = String(repeating: "long-name.", count: 30) + "end"
    try sandbox.devices.run(
      "echo x | keyhaul item add old-phone --service \(name) --account \(name) --secret-file - -q")
    try sandbox.backUp(to: "b.tar")
    for line in [
      "item find old-phone", "item find b.tar --password-file .bp", "inspect b.tar --list --password-file .bp",
      "plan b.tar --to new-phone --password-file .bp -v", "diff b.tar new-phone --password-file .bp",
      "backup old-phone -o c.tar --password-file .bp --rounds 1 -v",
    ] {
      let piped = try sandbox.keyhaul(line)
      #expect(piped.output.contains(name), "\(line): \(piped)")
    }
    try sandbox.succeed("inspect b.tar --list --password-file .bp -o list.txt -q")
    #expect(String(decoding: try sandbox.read("list.txt"), as: UTF8.self).contains(name))
    // With COLUMNS or a terminal, the text is cut to the width.
    #expect(try !sandbox.devices.run("COLUMNS=80 keyhaul item find old-phone").output.contains(name))
    #expect(try !sandbox.devices.runOnTerminal(["item", "find", "old-phone"]).terminal.contains(name))
  }

  private func statusLineCount(in errors: String) -> Int { errors.ranges(of: "\"message_type\":\"status\"").count }

  @Test("With --json, a command writes at most ten status lines, and none with --no-progress")
  func statusLines() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.backUp(to: "b.tar")
    try sandbox.write(Array("another one\n".utf8), to: ".np")
    for line in [
      "verify b.tar --password-file .bp", "plan b.tar --password-file .bp", "convert b.tar -o c/ --yes",
      "rekey b.tar --password-file .bp --new-password-file .np", "backup old-phone -o d.tar --password-file .bp --yes",
    ] {
      // Verify and plan change nothing, so they have no dry run.
      let dryRun = line.hasPrefix("verify") || line.hasPrefix("plan") ? "" : "-n"
      let outcome = try sandbox.keyhaul("\(line) --json \(dryRun)")
      #expect(outcome.status == 0 && statusLineCount(in: outcome.errors) <= 10, "\(outcome.errors)")
      let withoutProgress = try sandbox.keyhaul("\(line) --json --no-progress \(dryRun)")
      #expect(statusLineCount(in: withoutProgress.errors) == 0)
    }
  }

  @Test("An export in JSON to a file prints a result document only with --json")
  func export() throws {
    let sandbox = try PhoneSandbox()
    let text = try sandbox.succeed("export old-phone --format json -o a.json")
    #expect(text.hasPrefix("Exported "))
    #expect(try sandbox.succeed("export old-phone --format json -o b.json -q").isEmpty)
    let document = try sandbox.object(sandbox.succeed("export old-phone --format json -o c.json --json"))
    #expect(document["format"] as? String == "export-result/1")
    for name in ["a.json", "b.json", "c.json"] {
      let file = try sandbox.object(String(decoding: try sandbox.read(name), as: UTF8.self))
      #expect(file["format"] as? String == "keychain-items/1")
    }
    #expect(try sandbox.object(sandbox.succeed("export old-phone --format json -o -"))["items"] != nil)
  }

  @Test("The demo ends without a message if the program that reads its output ends")
  func demo() throws {
    let sandbox = try DeviceSandbox()
    for count in [1, 3, 6] {
      let outcome = try sandbox.run("keyhaul demo | head -n \(count)")
      #expect(outcome.errors.isEmpty && outcome.output.count { $0 == "\n" } == count, "\(outcome)")
    }
  }
}
