import Foundation
import KeyhaulKit
import Reports
import Testing

@testable import keyhaul

/// The phone has 22 items. Four of them are in no backup. A report that covers only the backup must mention that such
/// items may exist.
@Suite("The note about items that no backup contains")
struct BackupBlindSpotTests {
  private static let passwordFlag = "--password-file .bp"

  /// The commands that report on a backup, for a different phone and for the source device.
  static let reports = [
    "plan b.tar --to new-phone \(passwordFlag)", "plan b.tar --to old-phone \(passwordFlag)",
    "plan b.tar --to old-phone \(passwordFlag) --compare", "plan b.tar --to new-phone \(passwordFlag) --compare -v",
    "plan plain.tar --to old-phone --compare", "plan b.tar --to new-phone \(passwordFlag) --by-app",
    "plan b.tar --to old-phone \(passwordFlag) --audit", "plan b.tar --to new-phone \(passwordFlag) --expect e.json",
    "plan b.tar --to new-phone \(passwordFlag) --redact", "restore b.tar --to old-phone \(passwordFlag) -n",
    "inspect b.tar", "inspect b.tar \(passwordFlag)", "inspect b.tar --list \(passwordFlag)", "inspect plain.tar",
    "verify b.tar \(passwordFlag)", "verify plain.tar", "diff b.tar plain.tar \(passwordFlag)",
    "diff b.tar old-phone \(passwordFlag)", "diff old-phone b.tar -v \(passwordFlag)",
    "why b.tar --account anna --service chat.example \(passwordFlag)", "why b.tar --kind generic \(passwordFlag)",
    "why b.tar --kind generic -v \(passwordFlag)", "why b.tar --account 'card 4' \(passwordFlag)",
  ]

  private static func sandbox() throws -> PhoneSandbox {
    try PhoneSandbox(named: "reports of backups") { sandbox in
      try sandbox.backUp(to: "b.tar")
      try sandbox.succeed("backup old-phone -o plain.tar --no-password -q")
      let expectations = """
        {"format": "plan-expectations/1",
         "expectations": [{"service": "chat.example", "account": "anna", "expect": "migrates"}]}
        """
      try sandbox.write(Array(expectations.utf8), to: "e.json")
    }
  }

  /// Returns how often the note occurs in a text, which may be wrapped.
  private func noteCount(in text: String) -> Int { unwrapped(text).ranges(of: BackupBlindSpots.line).count }

  /// Returns the sentence of the note in a JSON document.
  private func noteSentence(in document: [String: Any]) -> String? {
    (document["cannot_show"] as? [String: Any])?["sentence"] as? String
  }

  @Test("The note is shown once, within 80 columns, and also with -q", arguments: reports)
  func text(line: String) throws {
    let sandbox = try Self.sandbox()
    let outcome = try sandbox.devices.run("COLUMNS=80 keyhaul \(line)")
    #expect(outcome.status == 0, "\(outcome)")
    #expect(noteCount(in: outcome.output) == 1, "\(outcome.output)")
    for outputLine in outcome.output.split(separator: "\n") where !outputLine.hasPrefix("digest") {
      #expect(DisplayWidth.columns(of: String(outputLine)) <= 80, "\(outputLine)")
    }
    // No report claims that nothing stays behind, because it covers only the items in the backup.
    for claim in ["0 stay", "0 never do", "nothing stays", "Never leave the device (0)", "all that can move"] {
      #expect(!unwrapped(outcome.output).contains(claim), "\(claim): \(outcome.output)")
    }
    guard !line.contains(" -v") else { return }
    let quiet = try sandbox.devices.run("COLUMNS=80 keyhaul \(line) -q")
    #expect(noteCount(in: quiet.output) == 1, "\(quiet.output)")
  }

  @Test("The JSON document contains the note and its reasons", arguments: reports)
  func document(line: String) throws {
    let sandbox = try Self.sandbox()
    let document = try sandbox.object(sandbox.succeed("\(line) --json"))
    #expect(noteSentence(in: document) == BackupBlindSpots.sentence)
    #expect(
      (document["cannot_show"] as? [String: Any])?["reasons"] as? [String] == [
        "passcode-only", "hardware-key", "system-bound", "needs-authentication", "shared-group", "app-clip",
      ])
  }

  @Test("The note is not shown for a device, because its plan lists the items that no backup contains")
  func device() throws {
    let sandbox = try Self.sandbox()
    for line in [
      "plan old-phone --to new-phone", "plan old-phone --to old-phone --compare",
      "plan old-phone --to new-phone --by-app",
      "plan old-phone --to new-phone --audit", "plan old-phone --to new-phone --expect e.json",
      "why old-phone --account 'card 4'", "diff old-phone new-phone", "export old-phone -o -",
    ] {
      let outcome = try sandbox.keyhaul(line)
      #expect(noteCount(in: outcome.output + outcome.errors) == 0, "\(outcome)")
      if line.hasPrefix("export") { continue }
      #expect(try sandbox.object(sandbox.keyhaul("\(line) --json").output)["cannot_show"] == nil, "\(line)")
    }
    #expect(try sandbox.succeed("plan old-phone --to old-phone --compare").contains("* 18 restored, 4 stay behind"))
  }

  @Test("An export shows the note next to the result and in its document, but not with -q")
  func export() throws {
    let sandbox = try Self.sandbox()
    for (name, flags) in [("names.json", ""), ("out.csv", " --reveal"), ("out.wifi", " --reveal")] {
      let export = "export b.tar \(Self.passwordFlag) -o \(name)\(flags)"
      let outcome = try sandbox.keyhaul(export)
      #expect(outcome.status == 0 && noteCount(in: outcome.errors) == 1, "\(outcome)")
      let file = try sandbox.read(name)
      #expect(String(decoding: file, as: UTF8.self).contains("A backup cannot show") == (name == "names.json"))
      let quiet = try sandbox.keyhaul("\(export) -q --yes")
      #expect(quiet.status == 0 && noteCount(in: quiet.errors) == 0, "\(quiet)")
      #expect(try sandbox.read(name) == file)
    }
    let result = try sandbox.object(
      sandbox.succeed("export b.tar \(Self.passwordFlag) -o names.json --json --yes"))
    #expect(noteSentence(in: result) == BackupBlindSpots.sentence)
    let items = try sandbox.object(String(decoding: sandbox.read("names.json"), as: UTF8.self))
    #expect(noteSentence(in: items) == BackupBlindSpots.sentence)
  }

  @Test("The note is shown if no item of a backup matches")
  func nothingMatches() throws {
    let sandbox = try Self.sandbox()
    try sandbox.succeed("device delete old-phone --confirm old-phone -q")
    let unmatched = try sandbox.keyhaul("why b.tar --account 'card 4' \(Self.passwordFlag)")
    #expect(unmatched.status == 4 && noteCount(in: unmatched.errors) == 1, "\(unmatched)")
    let quiet = try sandbox.keyhaul("why b.tar --account 'card 4' \(Self.passwordFlag) -q")
    #expect(quiet.status == 4 && noteCount(in: quiet.errors) == 0, "\(quiet)")
  }

  @Test("Each page shows the note once, and its verdict is about the backup, not about the phone")
  func pages() throws {
    let sandbox = try Self.sandbox()
    let pages: [(line: String, verdict: String)] = [
      ("plan b.tar --to old-phone", "All 18 items in the backup are restored to old-phone"),
      ("inspect b.tar", "With the password, this keychain can move to any device"),
      ("diff b.tar plain.tar", "Nothing differs"),
    ]
    for (line, verdict) in pages {
      let page = try sandbox.succeed("\(line) --format html \(Self.passwordFlag) -o -").replacing("&#39;", with: "'")
      #expect(noteCount(in: page) == 1, "\(line)")
      #expect(page.contains(verdict), "\(line)")
    }
    let pageOfDevice = try sandbox.succeed("plan old-phone --to new-phone --format html -o -")
    #expect(noteCount(in: pageOfDevice) == 0)
  }

  @Test("A saved plan with an edited note is refused, and the unedited plan can be carried out")
  func checksum() throws {
    let sandbox = try Self.sandbox()
    try sandbox.succeed("plan b.tar --to new-phone \(Self.passwordFlag) -o move.plan -q")
    let text = String(decoding: try sandbox.read("move.plan"), as: UTF8.self)
    #expect(text.contains("passcode-only items"))
    try sandbox.write(Array(text.replacing("passcode-only items", with: "nothing of note").utf8), to: "edited.plan")
    let refused = try sandbox.keyhaul("restore b.tar --to new-phone --plan edited.plan \(Self.passwordFlag) --yes")
    #expect(refused.status == 16 && refused.errors.contains("it was edited"), "\(refused)")
    let restored = try sandbox.keyhaul("restore b.tar --to new-phone --plan move.plan \(Self.passwordFlag) --yes")
    #expect(restored.status == 0, "\(restored)")
  }
}
