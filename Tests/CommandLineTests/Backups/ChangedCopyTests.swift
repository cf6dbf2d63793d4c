import Foundation
import KeyhaulKit
import Testing

@testable import keyhaul

@Suite("Changing backups that another program made")
struct ChangedCopyTests {
  private static let group = "ABCDE12345.org.example.chat"
  private static let changes = [
    "item add BACKUP --service fresh --account zoe --access-group \(group) --secret-file .np --password-file .bp",
    "item update BACKUP --service chat.example --new-label other --yes --password-file .bp",
    "item delete BACKUP --service chat.example --yes --password-file .bp",
    "rekey BACKUP --password-file .bp --new-password-file .np",
    "rekey BACKUP --password-file .bp --no-password",
  ]

  /// Returns a sandbox with a backup by Keyhaul (`own`) and backups as other programs leave them: `b` in a folder without a
  /// seal, `b.tar` packed, and `sealed` made by iTunes and sealed by Keyhaul.
  private static func sandbox() throws -> PhoneSandbox {
    try PhoneSandbox(named: "a backup by another program") { sandbox in
      try sandbox.write(Array("another one\n".utf8), to: ".np")
      try sandbox.backUp(to: "own/")
      try sandbox.devices.run("cp -R own b && rm b/Keyhaul.seal && tar cf b.tar b")
      // Keyhaul changes its own backups in place without a flag. A seal alone does not make a backup Keyhaul's own.
      try sandbox.devices.run(
        "cp -R b sealed && sed -i 's|<dict>|<dict><key>iTunes Version</key><string>12.13</string>|' sealed/Info.plist")
      try sandbox.succeed("seal sealed --password-file .bp -q")
    }
  }

  /// Returns the digests of the files in a backup folder, or the digest of a packed backup.
  private func digests(of path: String, in sandbox: PhoneSandbox) throws -> String {
    try sandbox.devices.run("find \(path) -type f | sort | xargs sha256sum").output
  }

  @Test("Without -o and --in-place, a change is rejected before Keyhaul asks for a password", arguments: changes)
  func refused(line: String) throws {
    let sandbox = try Self.sandbox()
    for backup in ["b", "b.tar", "sealed"] {
      let digestsBefore = try digests(of: backup, in: sandbox)
      let lineWithoutPassword = line.replacing("BACKUP", with: backup).replacing("--password-file .bp", with: "")
      let outcome = try sandbox.keyhaul(lineWithoutPassword)
      #expect(outcome.status == 64, "\(outcome)")
      #expect(outcome.errors.hasPrefix("error: \(backup) is not changed in place unless you say so\n"), "\(outcome)")
      #expect(unwrapped(outcome.errors).contains("-o COPY to write a changed copy, or --in-place"), "\(outcome)")
      #expect(try digests(of: backup, in: sandbox) == digestsBefore)
    }
  }

  @Test("With -o, a changed copy is written, which passes verify, and the backup stays as it is", arguments: changes)
  func copied(line: String) throws {
    let sandbox = try Self.sandbox()
    let passwordFileOfCopy = line.hasPrefix("rekey") ? ".np" : ".bp"
    let passwordOfCopy = line.contains("--no-password") ? "" : "--password-file \(passwordFileOfCopy)"
    let copies: [(backup: String, copy: String)] = [
      ("b", "copy/"), ("b", "copy.tar.gz"), ("b.tar", "copy2/"), ("b.tar", "copy2.zip"), ("own", "c3/"),
    ]
    for (backup, copy) in copies {
      let digestsBefore = try digests(of: backup, in: sandbox)
      let outcome = try sandbox.keyhaul(line.replacing("BACKUP", with: backup) + " -o \(copy)")
      #expect(outcome.status == 0 && outcome.output.contains("\(backup) itself is unchanged"), "\(outcome)")
      #expect(try digests(of: backup, in: sandbox) == digestsBefore)
      let verified = try sandbox.keyhaul("verify \(copy) \(passwordOfCopy)")
      #expect(verified.status == 0, "\(verified)")
      if line.hasPrefix("item delete") {
        #expect(try sandbox.keyhaul("item find \(copy) --service chat.example \(passwordOfCopy)").status == 4)
        #expect(try sandbox.keyhaul("item find \(backup) --service chat.example --password-file .bp").status == 0)
      }
    }
  }

  @Test("With --in-place the backup itself is changed", arguments: changes)
  func inPlace(line: String) throws {
    let sandbox = try Self.sandbox()
    for backup in ["b", "b.tar", "sealed"] {
      let digestsBefore = try digests(of: backup, in: sandbox)
      #expect(try sandbox.keyhaul(line.replacing("BACKUP", with: backup) + " --in-place").status == 0)
      #expect(try digests(of: backup, in: sandbox) != digestsBefore)
    }
  }

  @Test("A backup that Keyhaul made is changed without a flag, and a dry run needs no flag", arguments: changes)
  func unflagged(line: String) throws {
    let sandbox = try Self.sandbox()
    #expect(try sandbox.keyhaul(line.replacing("BACKUP", with: "b") + " -n").status == 0)
    #expect(try sandbox.keyhaul(line.replacing("BACKUP", with: "own")).status == 0)
  }

  @Test("Flags that contradict each other, or that a device cannot have, are refused")
  func flags() throws {
    let sandbox = try Self.sandbox()
    let deletion = "item delete b --service chat.example --yes --password-file .bp"
    let cases: [(line: String, message: String)] = [
      ("\(deletion) -o c/ --in-place", "cannot be used together"), ("\(deletion) -o -", "standard output"),
      ("\(deletion) -o b/inner", "is inside the input"), ("\(deletion) -o b", "is the input"),
      ("item delete old-phone --service chat.example --yes -o c/", "-o applies only to backups"),
      ("item delete old-phone --service chat.example --yes --in-place", "--in-place applies only to backups"),
    ]
    for (line, message) in cases {
      let outcome = try sandbox.keyhaul(line)
      #expect(outcome.status == 64 && unwrapped(outcome.errors).contains(message), "\(line): \(outcome)")
    }
  }

  @Test("Items are listed before Keyhaul asks whether to delete them, and stay if the answer is no")
  func listed() throws {
    let sandbox = try Self.sandbox()
    let line = "item delete own --service chat.example --password-file .bp"
    let outcome = try sandbox.keyhaul(line, typed: ["n"])
    #expect(outcome.status == 1 && outcome.errors.contains("the answer was not yes"), "\(outcome)")
    let itemRange = try #require(outcome.terminal.range(of: "chat.example"))
    let questionRange = try #require(outcome.terminal.range(of: "Delete "))
    #expect(itemRange.lowerBound < questionRange.lowerBound && outcome.terminal.contains("KIND"), "\(outcome)")
    #expect(try sandbox.keyhaul("item find own --service chat.example --password-file .bp").status == 0)
  }

  @Test("The JSON document names the copy")
  func document() throws {
    let sandbox = try Self.sandbox()
    let deleted = try sandbox.object(
      sandbox.succeed("item delete b --service chat.example --yes --password-file .bp -o c.tar --json"))
    #expect(deleted["output"] as? String == "c.tar" && deleted["deleted"] as? Int ?? 0 > 0)
    let rekeyed = try sandbox.object(
      sandbox.succeed("rekey b --password-file .bp --new-password-file .np -o d/ --json"))
    #expect(rekeyed["output"] as? String == "d/" && rekeyed["archive"] as? String == "b")
  }
}
