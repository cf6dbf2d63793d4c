import Foundation
import Testing

@testable import keyhaul

@Suite("Archives and comparisons as pages and files")
struct ReportFileTests {
  /// Two backups of one phone, between which it changed.
  private func world() throws -> MoveWorld {
    let world = try MoveWorld(backedUpTo: "monday.tar")
    try world.write(Array("plum-orchard-43".utf8), to: "secret")
    try world.succeed("item add old-phone --service garden.example --account anna --secret-file secret -q")
    try world.backUp(to: "family.tar")
    return world
  }

  @Test("a page says the verdict, is its owner's alone, and holds no secret")
  func pages() throws {
    let world = try world()
    let cases = [
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
      let outcome = try world.keyhaul("\(line) --format html -o page.html --yes")
      #expect(outcome.status == 0 && outcome.output.isEmpty, "\(line): \(outcome.errors)")
      #expect(outcome.errors.hasSuffix("Wrote page.html; open it in a browser.\n"))
      #expect(try world.devices.permissions(of: "page.html") == 0o600)
      let page = String(decoding: try world.read("page.html"), as: UTF8.self)
      #expect(page.contains(verdict), "\(line)")
      #expect(!page.contains("plum-orchard"))
    }
  }

  @Test("a document that cannot be printed as well leaves no file, and the old one where there was one")
  func lostDocument() throws {
    let world = try world()
    let before = try world.names()
    for verb in ["inspect family.tar", "diff monday.tar family.tar --password-file .bp"] {
      let lost = try world.devices.run("keyhaul \(verb) --json -o report.json --yes > /dev/full")
      #expect(lost.status == 1, "\(verb): \(lost)")
      #expect(lost.errors.contains("could not write the result"), "\(verb): \(lost)")
      #expect(try world.names() == before, "\(verb)")
    }
    let printed = try world.keyhaul("inspect family.tar --json -o report.json")
    #expect(try printed.status == 0 && Array(printed.output.utf8) == world.read("report.json"))
    let lost = try world.devices.run("keyhaul inspect monday.tar --json -o report.json --yes > /dev/full")
    #expect(try lost.status == 1 && Array(printed.output.utf8) == world.read("report.json"))
  }

  @Test("a page goes to no terminal, and takes the place of nothing that is read")
  func refusals() throws {
    let world = try world()
    for verb in ["inspect family.tar", "diff family.tar family.tar --password-file .bp"] {
      let refused = try world.devices.runOnTerminal("\(verb) --format html".split(separator: " ").map(String.init))
      #expect(refused.status == 64 && !refused.terminal.contains("<!DOCTYPE"))
      #expect(try world.succeed("\(verb) --format html -o -").hasPrefix("<!DOCTYPE html>"))
      let before = try world.read("family.tar")
      #expect(try world.keyhaul("\(verb) --format html -o family.tar --yes").status == 64)
      #expect(try world.read("family.tar") == before)
    }
    try world.backUp(to: "folder/")
    for output in ["devices/old-phone/device.json", "devices/new-phone/new", "./devices/../devices/old-phone/report"] {
      for verb in ["diff old-phone new-phone", "plan old-phone --to new-phone"] {
        #expect(try world.keyhaul("\(verb) -o \(output) --yes").status == 64, "\(verb) -o \(output)")
      }
    }
    let files = try world.files(in: "folder")
    #expect(try world.keyhaul("inspect folder/ -o folder/report --yes").status == 64)
    #expect(try world.files(in: "folder") == files)
    for part in ["--list", "--keybag", "--tree"] {
      #expect(try world.keyhaul("inspect family.tar \(part) --password-file .bp --format html").status == 64)
    }
  }

  @Test("what an ending says, it says with a page too")
  func endings() throws {
    let world = try world()
    let differs = try world.keyhaul(
      "diff monday.tar family.tar --password-file .bp --exit-code --format html -o page.html")
    #expect(differs.status == 2)
    #expect(try world.names().contains("page.html"))
    let wrong = try world.keyhaul("inspect family.tar --password-command 'echo no' --format html -o none.html")
    #expect(wrong.status == 12)
    #expect(try !world.names().contains("none.html"))
  }

  @Test("the text and the document go into a file as they would be printed; a document is printed all the same")
  func files() throws {
    let world = try world()
    for line in ["inspect family.tar --keybag", "diff monday.tar family.tar --password-file .bp"] {
      for flag in ["", " --json"] {
        let printed = try world.keyhaul("\(line)\(flag)").output
        let outcome = try world.keyhaul("\(line)\(flag) -o report --color always --yes")
        #expect(outcome.status == 0)
        let written = String(decoding: try world.read("report"), as: UTF8.self)
        // How long a derivation takes is measured again.
        func lasting(_ text: String) -> String {
          text.replacing(/(about|under) [0-9.]+ s|"unlock_seconds".*/, with: "")
        }
        #expect(lasting(written) == lasting(printed))
        #expect(outcome.output == (flag.isEmpty ? "" : written), "\(line)\(flag)")
        #expect(outcome.errors.hasSuffix("Wrote report.\n") == flag.isEmpty, "\(outcome.errors)")
      }
    }
  }

  @Test("with --json and a file, standard output holds the document that is in the file, whichever verb made it")
  func documents() throws {
    let world = try world()
    for line in [
      "inspect family.tar", "inspect family.tar --tree -v --password-file .bp",
      "diff monday.tar family.tar --password-file .bp", "plan family.tar --to new-phone --password-file .bp",
    ] {
      let outcome = try world.keyhaul("\(line) --json -o report --yes")
      #expect(outcome.status == 0, "\(outcome)")
      #expect(String(decoding: try world.read("report"), as: UTF8.self) == outcome.output, "\(line)")
      #expect(try world.object(outcome.output)["format"] is String)
      // On standard output itself there is one of it, not two.
      let dash = try world.keyhaul("\(line) --json -o -")
      #expect(dash.status == 0 && dash.output.ranges(of: "\"format\"").count == 1, "\(line): \(dash.output)")
    }
  }

  @Test("a folder of several backups has no page, and its list goes into a file as it would be printed")
  func severalBackups() throws {
    let world = try world()
    try world.devices.run("mkdir shelf")
    for name in ["one", "two"] { try world.succeed("backup old-phone -o shelf/\(name)/ --no-password -q") }
    let outcome = try world.keyhaul("inspect shelf --format html")
    #expect(outcome.status == 64 && outcome.errors.contains("shelf contains 2 backups"))
    for flag in ["", " --json"] {
      let printed = try world.succeed("inspect shelf\(flag)")
      try world.write([], to: "list")
      let written = try world.keyhaul("inspect shelf\(flag) -o list --yes")
      #expect(written.status == 0 && written.output == (flag.isEmpty ? "" : printed), "\(flag): \(written.errors)")
      #expect(String(decoding: try world.read("list"), as: UTF8.self) == printed)
    }
  }

  @Test("a key that is read is not replaced by what is read with it")
  func deviceKey() throws {
    let world = try world()
    let key = [UInt8](repeating: 7, count: 16)
    try world.write(key, to: "key")
    for line in ["diff monday.tar family.tar", "inspect family.tar"] {
      let outcome = try world.keyhaul("\(line) --password-file .bp --device-key-file key -o key --yes")
      #expect(outcome.status == 64 && outcome.errors.contains("key is the input"), "\(line): \(outcome.errors)")
      #expect(try world.read("key") == key)
    }
  }

  @Test("a password's file is not replaced by what is written with it, whoever names it")
  func passwordFile() throws {
    let world = try world()
    let password = try world.read(".bp")
    for line in [
      "backup old-phone --password-file .bp --rounds 1", "convert monday.tar --password-file .bp --decrypted",
    ] {
      let outcome = try world.keyhaul("\(line) -o .bp --yes")
      #expect(outcome.status == 64 && outcome.errors.contains(".bp is the input"), "\(line): \(outcome.errors)")
    }
    for line in [
      "export monday.tar --format json", "inspect monday.tar", "plan monday.tar --to new-phone",
      "backup old-phone --rounds 1", "convert monday.tar",
    ] {
      let outcome = try world.devices.run("KEYHAUL_PASSWORD_FILE=.bp keyhaul \(line) -o .bp --yes")
      #expect(outcome.status == 64 && outcome.errors.contains(".bp is the input"), "\(line): \(outcome.errors)")
    }
    #expect(try world.read(".bp") == password)
  }

  @Test("nothing is written into a device's folder, whatever the way there is called")
  func deviceFolder() throws {
    let world = try world()
    try world.devices.run("ln -s devices/old-phone way; mkdir -p into")
    let before = try world.files(in: "devices/old-phone")
    for line in [
      "backup new-phone --password-file .bp --rounds 1 -o devices/old-phone/hardware.uid",
      "backup old-phone --password-file .bp --rounds 1 -o devices/old-phone/device.json",
      "backup new-phone --password-file .bp --rounds 1 -o devices/old-phone/b.tar",
      "backup new-phone --password-file .bp --rounds 1 -o devices/old-phone/",
      "backup new-phone --password-file .bp --rounds 1 -o way/keybag", "convert monday.tar -o way/b/",
      "convert monday.tar -o into/../devices/old-phone/copy.zip",
      "inspect monday.tar -o devices/old-phone/keybag --password-file .bp",
      "plan monday.tar --to new-phone --password-file .bp -o devices/old-phone/plan.json",
      "export monday.tar --password-file .bp -o way/keychain-2.db --format json",
      "export monday.tar --password-file .bp --files devices/old-phone/files",
    ] {
      let outcome = try world.keyhaul("\(line) --yes")
      let said = outcome.errors.split(whereSeparator: \.isWhitespace).joined(separator: " ")
      #expect(outcome.status == 64 && said.contains("is in the folder of the device old-phone"), "\(line): \(said)")
    }
    #expect(try world.files(in: "devices/old-phone") == before)
    #expect(try world.keyhaul("device show old-phone").status == 0)
  }

  @Test("a device is not deleted with what somebody put into its folder")
  func foreignFile() throws {
    let world = try world()
    try world.devices.run("echo precious > devices/new-phone/diary.txt; cp -r devices/new-phone devices/.gone.tmp")
    for flags in ["-n", "--confirm new-phone"] {
      let outcome = try world.keyhaul("device delete new-phone \(flags)")
      #expect(
        outcome.status == 64 && outcome.errors.contains("diary.txt is not part of the device"), "\(outcome.errors)")
    }
    try world.devices.run("rm devices/new-phone/diary.txt")
    // Of a deletion that was killed no key is left, once anything looks at the home; what holds more is nobody's rest.
    try world.succeed("device list -q")
    #expect(try world.names(in: "devices").contains(".gone.tmp"))
    try world.devices.run("rm devices/.gone.tmp/diary.txt")
    try world.succeed("device list -q")
    #expect(try world.names(in: "devices").contains(".gone.tmp") == false)
    try world.succeed("device delete new-phone --confirm new-phone")
  }

  @Test("a page calls a device by the path that was typed")
  func devicePath() throws {
    let page = try world().succeed("diff monday.tar ./devices/old-phone --password-file .bp --format html -o -")
    #expect(page.contains("<span>./devices/old-phone</span>"))
    let plan = try world().succeed("plan monday.tar --to ./devices/new-phone --password-file .bp --format html -o -")
    #expect(plan.contains("<span>./devices/new-phone</span>"))
  }
}
