import Foundation
import Testing

@testable import keyhaul

@Suite("Pages and files of backup and difference reports")
struct ReportFileTests {
  /// Returns a sandbox with two backups of one phone. Between them, an item was added to the phone.
  private func sandbox() throws -> PhoneSandbox {
    let sandbox = try PhoneSandbox(backedUpTo: "monday.tar")
    try sandbox.write(Array("plum-orchard-43".utf8), to: "secret")
    try sandbox.succeed("item add old-phone --service garden.example --account anna --secret-file secret -q")
    try sandbox.backUp(to: "family.tar")
    return sandbox
  }

  @Test("A page shows the verdict, is readable only by its owner, and contains no secret")
  func pages() throws {
    let sandbox = try sandbox()
    let cases: [(line: String, verdict: String)] = [
      (
        "inspect family.tar",
        ">With the password, this keychain can move to any device; its this-device-only items can be restored only to "
          + "old-phone.<"
      ),
      (
        "inspect family.tar --password-file .bp",
        ">With the password, this keychain can move to any device; 4 of 19 items can be restored only to old-phone.<"
      ),
      ("diff monday.tar family.tar --password-file .bp", ">1 item is new; 18 are the same.<"),
    ]
    for (line, verdict) in cases {
      let outcome = try sandbox.keyhaul("\(line) --format html -o page.html --yes")
      #expect(outcome.status == 0 && outcome.output.isEmpty, "\(line): \(outcome.errors)")
      #expect(outcome.errors.hasSuffix("Wrote page.html; open it in a browser.\n"))
      #expect(try sandbox.devices.permissions(of: "page.html") == 0o600)
      let page = String(decoding: try sandbox.read("page.html"), as: UTF8.self)
      #expect(page.contains(verdict), "\(line)")
      #expect(!page.contains("plum-orchard"))
    }
  }

  @Test("If standard output cannot be written, no new file is written either, and an old file stays unchanged")
  func unprintedDocument() throws {
    let sandbox = try sandbox()
    let namesBefore = try sandbox.names()
    for line in ["inspect family.tar", "diff monday.tar family.tar --password-file .bp"] {
      let failed = try sandbox.devices.run("keyhaul \(line) --json -o report.json --yes > /dev/full")
      #expect(failed.status == 1, "\(line): \(failed)")
      #expect(failed.errors.contains("could not write the result"), "\(line): \(failed)")
      #expect(try sandbox.names() == namesBefore, "\(line)")
    }
    let printed = try sandbox.keyhaul("inspect family.tar --json -o report.json")
    #expect(try printed.status == 0 && Array(printed.output.utf8) == sandbox.read("report.json"))
    let failed = try sandbox.devices.run("keyhaul inspect monday.tar --json -o report.json --yes > /dev/full")
    #expect(try failed.status == 1 && Array(printed.output.utf8) == sandbox.read("report.json"))
  }

  @Test("A page is not shown on a terminal, does not replace an input, and cannot show a single part")
  func refusals() throws {
    let sandbox = try sandbox()
    for line in ["inspect family.tar", "diff family.tar family.tar --password-file .bp"] {
      let refused = try sandbox.devices.runOnTerminal("\(line) --format html".split(separator: " ").map(String.init))
      #expect(refused.status == 64 && !refused.terminal.contains("<!DOCTYPE"))
      #expect(try sandbox.succeed("\(line) --format html -o -").hasPrefix("<!DOCTYPE html>"))
      let bytesBefore = try sandbox.read("family.tar")
      #expect(try sandbox.keyhaul("\(line) --format html -o family.tar --yes").status == 64)
      #expect(try sandbox.read("family.tar") == bytesBefore)
    }
    for view in ["--list", "--keybag", "--tree"] {
      #expect(try sandbox.keyhaul("inspect family.tar \(view) --password-file .bp --format html").status == 64)
    }
  }

  @Test("A report cannot be written into the folder of a device or backup that is an input")
  func outputInsideInput() throws {
    let sandbox = try sandbox()
    try sandbox.backUp(to: "folder/")
    for output in ["devices/old-phone/device.json", "devices/new-phone/new", "./devices/../devices/old-phone/report"] {
      for line in ["diff old-phone new-phone", "plan old-phone --to new-phone"] {
        #expect(try sandbox.keyhaul("\(line) -o \(output) --yes").status == 64, "\(line) -o \(output)")
      }
    }
    let files = try sandbox.files(in: "folder")
    #expect(try sandbox.keyhaul("inspect folder/ -o folder/report --yes").status == 64)
    #expect(try sandbox.files(in: "folder") == files)
  }

  @Test("With --format html, diff exits with 2 for a difference, and inspect with 12 for a wrong password")
  func exitStatuses() throws {
    let sandbox = try sandbox()
    let differs = try sandbox.keyhaul(
      "diff monday.tar family.tar --password-file .bp --exit-code --format html -o page.html")
    #expect(differs.status == 2)
    #expect(try sandbox.names().contains("page.html"))
    let wrongPassword = try sandbox.keyhaul(
      "inspect family.tar --password-command 'echo no' --format html -o none.html")
    #expect(wrongPassword.status == 12)
    #expect(try !sandbox.names().contains("none.html"))
  }

  @Test("A report in a file equals the printed report, and --json also prints the document")
  func files() throws {
    let sandbox = try sandbox()
    for line in ["inspect family.tar --keybag", "diff monday.tar family.tar --password-file .bp"] {
      for flag in ["", " --json"] {
        let printed = try sandbox.keyhaul("\(line)\(flag)").output
        let outcome = try sandbox.keyhaul("\(line)\(flag) -o report --color always --yes")
        #expect(outcome.status == 0)
        let written = String(decoding: try sandbox.read("report"), as: UTF8.self)
        // The duration of a key derivation differs from run to run.
        func withoutDurations(_ text: String) -> String {
          text.replacing(/(about|under) [0-9.]+ s|"unlock_seconds".*/, with: "")
        }
        #expect(withoutDurations(written) == withoutDurations(printed))
        #expect(outcome.output == (flag.isEmpty ? "" : written), "\(line)\(flag)")
        #expect(outcome.errors.hasSuffix("Wrote report.\n") == flag.isEmpty, "\(outcome.errors)")
      }
    }
  }

  @Test("With --json and -o, a command also prints the document of the file to standard output")
  func documents() throws {
    let sandbox = try sandbox()
    for line in [
      "inspect family.tar", "inspect family.tar --tree -v --password-file .bp",
      "diff monday.tar family.tar --password-file .bp", "plan family.tar --to new-phone --password-file .bp",
    ] {
      let outcome = try sandbox.keyhaul("\(line) --json -o report --yes")
      #expect(outcome.status == 0, "\(outcome)")
      #expect(String(decoding: try sandbox.read("report"), as: UTF8.self) == outcome.output, "\(line)")
      #expect(try sandbox.object(outcome.output)["format"] is String)
      // With -o -, the document is printed once, not twice.
      let printed = try sandbox.keyhaul("\(line) --json -o -")
      #expect(printed.status == 0 && printed.output.ranges(of: "\"format\"").count == 1, "\(line): \(printed.output)")
    }
  }

  @Test("A folder of several backups has no page, but its list can be written to a file")
  func severalBackups() throws {
    let sandbox = try sandbox()
    try sandbox.devices.run("mkdir shelf")
    for name in ["one", "two"] { try sandbox.succeed("backup old-phone -o shelf/\(name)/ --no-password -q") }
    let outcome = try sandbox.keyhaul("inspect shelf --format html")
    #expect(outcome.status == 64 && outcome.errors.contains("shelf contains 2 backups"))
    for flag in ["", " --json"] {
      let printed = try sandbox.succeed("inspect shelf\(flag)")
      try sandbox.write([], to: "list")
      let written = try sandbox.keyhaul("inspect shelf\(flag) -o list --yes")
      #expect(written.status == 0 && written.output == (flag.isEmpty ? "" : printed), "\(flag): \(written.errors)")
      #expect(String(decoding: try sandbox.read("list"), as: UTF8.self) == printed)
    }
  }

  @Test("A report cannot replace the device key file")
  func deviceKey() throws {
    let sandbox = try sandbox()
    let key = [UInt8](repeating: 7, count: 16)
    try sandbox.write(key, to: "key")
    for line in ["diff monday.tar family.tar", "inspect family.tar"] {
      let outcome = try sandbox.keyhaul("\(line) --password-file .bp --device-key-file key -o key --yes")
      #expect(outcome.status == 64 && outcome.errors.contains("key is the input"), "\(line): \(outcome.errors)")
      #expect(try sandbox.read("key") == key)
    }
  }

  @Test("No output can replace the password file, even if the environment names it")
  func passwordFile() throws {
    let sandbox = try sandbox()
    let password = try sandbox.read(".bp")
    for line in [
      "backup old-phone --password-file .bp --rounds 1", "convert monday.tar --password-file .bp --decrypted",
    ] {
      let outcome = try sandbox.keyhaul("\(line) -o .bp --yes")
      #expect(outcome.status == 64 && outcome.errors.contains(".bp is the input"), "\(line): \(outcome.errors)")
    }
    for line in [
      "export monday.tar --format json", "inspect monday.tar", "plan monday.tar --to new-phone",
      "backup old-phone --rounds 1", "convert monday.tar",
    ] {
      let outcome = try sandbox.devices.run("KEYHAUL_PASSWORD_FILE=.bp keyhaul \(line) -o .bp --yes")
      #expect(outcome.status == 64 && outcome.errors.contains(".bp is the input"), "\(line): \(outcome.errors)")
    }
    #expect(try sandbox.read(".bp") == password)
  }

  @Test("No output can be written into a device's folder, by any path")
  func deviceFolder() throws {
    let sandbox = try sandbox()
    try sandbox.devices.run("ln -s devices/old-phone link; mkdir -p folder")
    let filesBefore = try sandbox.files(in: "devices/old-phone")
    for line in [
      "backup new-phone --password-file .bp --rounds 1 -o devices/old-phone/hardware.uid",
      "backup old-phone --password-file .bp --rounds 1 -o devices/old-phone/device.json",
      "backup new-phone --password-file .bp --rounds 1 -o devices/old-phone/b.tar",
      "backup new-phone --password-file .bp --rounds 1 -o devices/old-phone/",
      "backup new-phone --password-file .bp --rounds 1 -o link/keybag", "convert monday.tar -o link/b/",
      "convert monday.tar -o folder/../devices/old-phone/copy.zip",
      "inspect monday.tar -o devices/old-phone/keybag --password-file .bp",
      "plan monday.tar --to new-phone --password-file .bp -o devices/old-phone/plan.json",
      "export monday.tar --password-file .bp -o link/keychain-2.db --format json",
      "export monday.tar --password-file .bp --files devices/old-phone/files",
    ] {
      let outcome = try sandbox.keyhaul("\(line) --yes")
      #expect(
        outcome.status == 64 && unwrapped(outcome.errors).contains("is in the folder of the device old-phone"),
        "\(line): \(outcome)")
    }
    #expect(try sandbox.files(in: "devices/old-phone") == filesBefore)
    #expect(try sandbox.keyhaul("device show old-phone").status == 0)
  }

  @Test("A device folder with unrelated files is not deleted")
  func unrelatedFile() throws {
    let sandbox = try sandbox()
    // An interrupted deletion leaves a folder with such a name.
    let leftover = ".gone.tmp"
    try sandbox.devices.run("echo precious > devices/new-phone/diary.txt; cp -r devices/new-phone devices/\(leftover)")
    for flags in ["-n", "--confirm new-phone"] {
      let outcome = try sandbox.keyhaul("device delete new-phone \(flags)")
      #expect(
        outcome.status == 64 && outcome.errors.contains("diary.txt is not part of the device"), "\(outcome.errors)")
    }
    try sandbox.devices.run("rm devices/new-phone/diary.txt")
    // Any later command deletes the leftover, unless it contains an unrelated file.
    try sandbox.succeed("device list -q")
    #expect(try sandbox.names(in: "devices").contains(leftover))
    try sandbox.devices.run("rm devices/\(leftover)/diary.txt")
    try sandbox.succeed("device list -q")
    #expect(try !sandbox.names(in: "devices").contains(leftover))
    try sandbox.succeed("device delete new-phone --confirm new-phone")
  }

  @Test("A page names a device by the path that was typed")
  func devicePath() throws {
    let page = try sandbox().succeed("diff monday.tar ./devices/old-phone --password-file .bp --format html -o -")
    #expect(page.contains("<span>./devices/old-phone</span>"))
    let plan = try sandbox().succeed("plan monday.tar --to ./devices/new-phone --password-file .bp --format html -o -")
    #expect(plan.contains("<span>./devices/new-phone</span>"))
  }
}
