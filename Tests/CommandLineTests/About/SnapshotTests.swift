import Foundation
import TestSupport
import Testing

@testable import keyhaul

/// Complete reports, compared at two widths.
///
/// `KEYHAUL_RECORD_SNAPSHOTS=1 swift test --filter SnapshotTests` records the snapshots again. Read the changes before
/// you commit them.
@Suite("Snapshots of reports")
struct SnapshotTests {
  /// The names of the reports, each with the command line that prints it.
  static let reports: [(name: String, line: String)] = [
    ("plan", "plan old-phone.tar --to new-phone --password-file .bp"),
    ("plan-merge-all", "plan old-phone.tar --to new-phone --password-file .bp --existing merge -v"),
    ("plan-without-password", "plan plain.tar --to new-phone"),
    ("plan-same-device", "plan old-phone.tar --to old-phone --password-file .bp"),
    ("plan-stranger", "plan stranger.tar --to new-phone --password-file .bp"),
    ("plan-device", "plan old-phone --to new-phone"),
    ("plan-device-without-password", "plan old-phone --to new-phone --no-password --existing merge"),
    ("futures", "plan old-phone.tar --password-file .bp"),
    ("futures-stranger", "plan stranger.tar --password-file .bp"), ("futures-without-password", "plan plain.tar"),
    ("futures-device", "plan old-phone"), ("futures-redacted", "plan old-phone.tar --password-file .bp --redact -v"),
    ("plan-every-rule", "plan every-rule --to every-rule-target --existing merge"),
    ("plan-every-rule-replace", "plan every-rule --to every-rule-target"),
    ("plan-locked", "plan old-phone.tar --to pocket --password-file .bp"),
    ("plan-locked-removed", "plan every-rule.tar --to pocket --password-file .bp"),
    ("plan-redacted", "plan old-phone --to new-phone --redact"),
    ("plan-hostile", "plan hostile-names --to new-phone -v"),
    ("plan-compare", "plan old-phone --to new-phone --compare"),
    ("plan-compare-all", "plan plain.tar --to new-phone --compare -v"),
    ("plan-by-app", "plan old-phone --to new-phone --by-app"),
    ("plan-audit", "plan old-phone --to new-phone --audit"),
    ("plan-expect", "plan old-phone --to new-phone --expect expected.json"),
    ("why-moves", "why old-phone.tar --account anna --service chat.example --to new-phone --password-file .bp"),
    ("why-replaces", "why old-phone.tar --account Home --to new-phone --password-file .bp"),
    ("why-sealed", "why old-phone.tar --account 'push token' --to new-phone --password-file .bp"),
    ("why-never", "why old-phone --account 'vault key' --to new-phone"),
    ("why-left-out", "why old-phone.tar --account 'card 4' --password-file .bp"),
    ("why-target-only", "why every-rule.tar --account removed --to every-rule-target --password-file .bp"),
    ("why-several", "why old-phone.tar --kind generic --to new-phone --password-file .bp"),
    ("why-hostile", "why hostile-names --account page"),
    ("explain", "explain"), ("explain-reason", "explain needs-authentication"), ("explain-change", "explain replaces"),
    ("explain-removed", "explain removed"),
    ("inspect", "inspect old-phone.tar"), ("inspect-open", "inspect old-phone.tar --password-file .bp"),
    ("inspect-without-password", "inspect plain.tar"), ("inspect-keybag", "inspect old-phone.tar --keybag"),
    ("inspect-path", "inspect '\(longPath)' -q"),
    ("inspect-list", "inspect stranger.tar --list --password-file .bp"),
    ("inspect-tree", "inspect old-phone.tar --tree --password-file .bp"), ("inspect-shelf", "inspect 'my shelf'"),
    ("verify", "verify stranger.tar --password-file .bp"), ("verify-quick", "verify old-phone.tar --quick"),
    ("diff", "diff old-phone.tar later.tar --password-file .bp"),
    ("diff-device", "diff later.tar later -v --password-file .bp"),
    ("diff-sealed", "diff stranger.tar old-phone.tar --password-file .bp"),
    ("diff-hostile", "diff new-phone hostile-names"), ("device-list", "device list"),
    ("device-show", "device show old-phone"), ("item-find", "item find old-phone"),
    ("item-find-hostile", "item find hostile-names"),
  ]

  /// The path where a computer keeps the backup of a phone.
  private static let longPath = "Library/Application Support/MobileSync/Backup/00008120-001C25D40C02002E"

  /// Returns a new copy of the devices and backups that the reports describe.
  static func sandbox() throws -> PhoneSandbox { try PhoneSandbox(copyOf: template.get()) }

  private static let template = Result { try makeTemplate() }

  private static func makeTemplate() throws -> PhoneSandbox {
    let sandbox = try PhoneSandbox()
    sandbox.devices.removeAtExit()
    try sandbox.backUp(to: "old-phone.tar")
    try sandbox.succeed("backup old-phone -o plain.tar --no-password -q")
    for name in ["every-rule", "every-rule-target", "hostile-names"] {
      try sandbox.succeed("device create \(name) --from \(name) -q")
    }
    try sandbox.backUp("every-rule", to: "every-rule.tar")
    // The backup of a device that no longer exists.
    try sandbox.succeed("device create stranger --from old-phone -q")
    try sandbox.backUp("stranger", to: "stranger.tar")
    try sandbox.succeed("device delete stranger --confirm stranger -q")
    // The same phone after some changes.
    try sandbox.succeed("device create later --from old-phone -q")
    try sandbox.write(Array("x".utf8), to: "secret")
    try sandbox.succeed("item add later --service garden.example --account anna --secret-file secret -q")
    try sandbox.succeed(
      "item update later --service AirPort --account Home --new-label 'At home' --new-secret-file secret -q --yes")
    try sandbox.succeed("item delete later --service home.example --account guest -q --yes")
    try sandbox.backUp("later", to: "later.tar")
    try sandbox.devices.run("mkdir -p 'Library/Application Support/MobileSync/Backup'")
    try sandbox.succeed("backup old-phone -o '\(longPath)/' --no-password -q")
    try sandbox.devices.run("mkdir 'my shelf'")
    for name in ["one", "two"] { try sandbox.succeed("backup new-phone -o 'my shelf/\(name)/' --no-password -q") }
    try sandbox.succeed("device create pocket --from new-phone -q")
    try sandbox.succeed("device restart pocket -q")
    try sandbox.write(
      Array(
        """
        {"format": "plan-expectations/1", "expectations": [
          {"service": "chat.example", "account": "anna", "expect": "migrates"},
          {"account": "push token", "expect": "migrates"},
          {"account": "card *", "expect": "stays-behind", "reason": "device-bound"},
          {"kind": "key", "label": "*", "expect": "absent"},
          {"service": "no such service", "expect": "migrates"}]}
        """.utf8), to: "expected.json")
    return sandbox
  }

  private static let directory = Repository.root.appending(path: "Tests/CommandLineTests/Snapshots")
  private static let isRecording = ProcessInfo.processInfo.environment["KEYHAUL_RECORD_SNAPSHOTS"] == "1"

  /// Replaces dates, measured times and random identifiers, which differ from run to run.
  private static func masked(_ text: String) -> String {
    text.replacing(/\d{4}-\d\d-\d\d \d\d:\d\d/, with: "YYYY-MM-DD hh:mm")
      .replacing(/changed on \d{4}-\d\d-\d\d/, with: "changed on YYYY-MM-DD")
      .replacing(/\d{4}-\d\d-\d\d(?=  (?:yes|no) )/, with: "YYYY-MM-DD")
      .replacing(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/, with: "00000000-0000-0000-0000-000000000000")
      .replacing(/identifier       [0-9A-F]{8}-[0-9A-F]{16}/, with: "identifier       00000000-0000000000000000")
      .replacing(/UDID(\s+)[0-9A-F]{8}-[0-9A-F]{16}/) { "UDID\($0.output.1)00000000-0000000000000000" }
      .replacing(/number [0-9A-Z]{10}\b/, with: "number XXXXXXXXXX")
      .replacing(/unlocked in [0-9.]+ s/, with: "unlocked in under 0.1 s")
      .replacing(/(about [0-9.]+|under 0\.1) s/, with: "under 0.1 s")
  }

  /// Compares a report with its snapshot, and checks its width.
  ///
  /// - Parameter environment: Environment variables for the command, as a shell line has them: "LC_ALL=C".
  private func check(
    _ name: String, printedBy line: String, in sandbox: PhoneSandbox, columns: Int, environment: String = ""
  ) throws {
    let outcome = try sandbox.devices.run("COLUMNS=\(columns) \(environment) keyhaul \(line)")
    let text = Self.masked(outcome.output + (outcome.errors.isEmpty ? "" : "---\n" + outcome.errors))
    let file = Self.directory.appending(path: name + ".txt")
    if Self.isRecording { try Data(text.utf8).write(to: file) }
    let snapshot = try? String(contentsOf: file, encoding: .utf8)
    #expect(text == snapshot, "\(name) looks different:\n\(text)")
    // A missed expectation is one line of any length, so that a search in a log finds it.
    for line in text.split(separator: "\n") where !line.hasPrefix("missed: ") {
      #expect(DisplayWidth.columns(of: String(line)) <= columns, "\(name) is too wide:\n\(line)")
      #expect(!line.hasSuffix(" "), "\(name): a space at the end of \"\(line)\"")
    }
  }

  @Test("Reports match their snapshots at 80 and 120 columns", arguments: [80, 120])
  func widths(columns: Int) throws {
    let sandbox = try Self.sandbox()
    for report in Self.reports {
      try check("\(report.name).\(columns)", printedBy: report.line, in: sandbox, columns: columns)
    }
  }

  /// The plans for an iPhone's backups (`IPhoneBackups`).
  private static let phoneReports: [(name: String, line: String)] = [
    ("phone-plain", "plan plain/"), ("phone-encrypted", "plan encrypted/ --password-file .bp"),
    ("phone-old", "plan old/"), ("phone-all", "plan encrypted/ --password-file .bp -v"),
  ]

  @Test("Plans for an iPhone's backups match their snapshots at 60 and 80 columns", arguments: [60, 80])
  func phones(columns: Int) throws {
    let sandbox = try IPhoneBackups.sandbox()
    // The table of both devices is wider than 60 columns.
    for (name, line) in Self.phoneReports where columns == 80 || name != "phone-all" {
      try check("\(name).\(columns)", printedBy: line, in: sandbox, columns: columns)
    }
  }

  @Test("Reports match their snapshots with color, without UTF-8, and with NO_COLOR")
  func settings() throws {
    let sandbox = try Self.sandbox()
    let line = "plan old-phone --to new-phone"
    let asciiReports: [(name: String, line: String)] = [
      ("plan-device.ascii", line), ("inspect.ascii", "inspect old-phone.tar --password-file .bp"),
      ("diff-hostile.ascii", "diff new-phone hostile-names"),
      ("why-hostile.ascii", "why hostile-names --account decomposed"),
    ]
    for report in asciiReports {
      try check(report.name, printedBy: report.line, in: sandbox, columns: 80, environment: "LC_ALL=C")
    }
    let uncolored = try sandbox.devices.run("COLUMNS=80 keyhaul \(line)").output
    let ascii = try sandbox.devices.run("LC_ALL=C COLUMNS=80 keyhaul \(line)").output
    #expect(ascii.utf8.allSatisfy { $0 < 0x80 } && !uncolored.utf8.allSatisfy { $0 < 0x80 })
    let colored = try sandbox.devices.run("COLUMNS=80 keyhaul \(line) --color always").output
    // Only the colors differ.
    #expect(colored.replacing(/\u{1B}\[[0-9;]*m/, with: "") == uncolored && colored != uncolored)
    #expect(try sandbox.devices.run("NO_COLOR=1 COLUMNS=80 keyhaul \(line)").output == uncolored)
  }

  @Test("Every snapshot in the repository is compared")
  func complete() throws {
    let names = try FileManager.default.contentsOfDirectory(atPath: Self.directory.path).filter { $0.hasSuffix(".txt") }
    let expectedNames = Self.reports.flatMap { report in [80, 120].map { "\(report.name).\($0).txt" } }
    // The last report, "phone-all", has no snapshot at 60 columns.
    #expect(
      Set(names)
        == Set(
          expectedNames
            + ["diff-hostile.ascii.txt", "inspect.ascii.txt", "plan-device.ascii.txt", "why-hostile.ascii.txt"]
            + Self.phoneReports.map { "\($0.name).80.txt" } + Self.phoneReports.dropLast().map { "\($0.name).60.txt" }))
  }
}
