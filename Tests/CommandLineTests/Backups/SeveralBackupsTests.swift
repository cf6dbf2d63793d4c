import Foundation
import Testing

@testable import keyhaul

@Suite("Folders with several backups")
struct SeveralBackupsTests {
  /// Returns a sandbox whose folder `Backup` has a backup of each phone, and the identifiers of both phones.
  ///
  /// The backup of old-phone is named after its identifier, and the backup of new-phone is named "attic".
  private func sandbox() throws -> (PhoneSandbox, old: String, new: String) {
    func identifier(_ device: String, _ sandbox: PhoneSandbox) throws -> String {
      try #require(try sandbox.object(sandbox.succeed("device show \(device) --json"))["udid"] as? String)
    }
    let sandbox = try PhoneSandbox(named: "two backups in a folder") { sandbox in
      try sandbox.devices.run("mkdir Backup")
      try sandbox.backUp(to: "Backup/\(try identifier("old-phone", sandbox))/")
      try sandbox.backUp("new-phone", to: "Backup/attic/")
    }
    return (sandbox, try identifier("old-phone", sandbox), try identifier("new-phone", sandbox))
  }

  @Test("Inspect lists the backups in a folder, and commands that work on one backup require one of them")
  func listed() throws {
    let (sandbox, old, _) = try sandbox()
    let list = try sandbox.succeed("inspect Backup")
    #expect(list.contains("\(old)") && list.contains("attic") && list.contains("new-phone"))
    // A name is never cut, because the user may have to type it.
    let narrow = try sandbox.devices.run("COLUMNS=60 keyhaul inspect Backup").output
    #expect(narrow.contains("Backup/\(old)\n") && narrow.contains("Backup/attic\n"), "\(narrow)")
    try sandbox.write([1], to: "Backup/attic/Status.plist")
    let entries = try sandbox.object(sandbox.keyhaul("inspect Backup --json").output)["backups"] as? [[String: Any]]
    #expect(entries?.map { $0["state"] as? String } == ["finished", "damaged"])
    for line in [
      "export Backup/ -o x.json", "why Backup --account anna",
      "diff Backup Backup", "rekey Backup", "convert Backup -o x.tar", "restore Backup --to new-phone",
    ] {
      // A conversion needs no password.
      let password = line.hasPrefix("convert") ? "" : "--password-file .bp"
      let outcome = try sandbox.keyhaul("\(line) \(password)")
      #expect(outcome.status == 64, "\(line): \(outcome)")
      #expect(outcome.errors.contains("contains 2 backups; name one of them\n"), "\(line): \(outcome.errors)")
    }
  }

  @Test("The advice names a finished backup, or a placeholder if the user could not copy the backup's name")
  func suggested() throws {
    let (sandbox, old, _) = try sandbox()
    try sandbox.write([1], to: "Backup/\(old)/Status.plist")
    let line = "why Backup --account anna"
    #expect(
      try sandbox.keyhaul(line).errors.hasSuffix("  try: Backup/attic; keyhaul inspect Backup lists them\n"))
    // An escape sequence in a name would be lost when the user copies the name.
    try sandbox.devices.run("mv Backup/attic \"$(printf 'Backup/\\033[31mred')\"")
    let list = try sandbox.keyhaul("inspect Backup").output
    #expect(list.hasSuffix("\nOne of them in full: keyhaul inspect Backup/\(old)\n"), "\(list)")
    #expect(
      try sandbox.keyhaul(line).errors.hasSuffix("  try: ARCHIVE; keyhaul inspect Backup lists them\n"))
  }

  @Test("A backup is selected by its folder name, or by its device identifier in any case, but not by a part of either")
  func chosen() throws {
    let (sandbox, old, new) = try sandbox()
    let arguments: [(backup: String, device: String)] = [
      ("Backup/\(old)", "old-phone"), ("Backup/attic", "new-phone"), ("Backup/\(new)", "new-phone"),
      ("Backup/\(new.lowercased())/", "new-phone"), ("./Backup/\(new)", "new-phone"),
    ]
    for (backup, device) in arguments {
      let document = try sandbox.object(sandbox.succeed("inspect \(backup) --json"))
      #expect((document["device"] as? [String: Any])?["name"] as? String == device, "\(backup)")
      for line in [
        "verify \(backup)", "export \(backup) -o -", "plan \(backup) --to new-phone", "diff \(backup) \(backup)",
        "why \(backup) --item 0", "rekey \(backup) --new-password-file .bp -n", "restore \(backup) --to new-phone -n",
      ] {
        #expect(try sandbox.keyhaul("\(line) --password-file .bp").status == 0, "\(line)")
      }
      try sandbox.succeed("convert \(backup) -o copy.tar --yes")
    }
    #expect(try sandbox.devices.run("cd Backup && keyhaul verify \(new) --quick").status == 0)
    for part in [String(new.prefix(12)), String(old.dropLast()), "att", "atticus", "phone"] {
      let outcome = try sandbox.keyhaul("verify Backup/\(part) --quick")
      #expect(outcome.status == 10 && outcome.errors.hasPrefix("error: Backup/\(part) does not exist\n"), "\(outcome)")
      #expect(outcome.errors.contains("  why: it contains ") && outcome.errors.contains("keyhaul inspect Backup lists"))
    }
    try sandbox.devices.run("cp -R Backup/attic Backup/cellar")
    let ambiguous = try sandbox.keyhaul("verify Backup/\(new) --quick")
    #expect(ambiguous.status == 64 && ambiguous.errors.hasPrefix("error: Backup/\(new) matches several backups\n"))
    #expect(try sandbox.keyhaul("verify Backup/cellar --quick").status == 0)
  }

  @Test("A report cannot replace a backup that was selected by its identifier")
  func output() throws {
    let (sandbox, _, new) = try sandbox()
    let files = try sandbox.files(in: "Backup/attic")
    let outcome = try sandbox.keyhaul("inspect Backup/\(new) -o Backup/attic/report --yes")
    #expect(outcome.status == 64 && outcome.errors.contains("is inside the input"), "\(outcome)")
    #expect(try sandbox.files(in: "Backup/attic") == files)
  }

  @Test("A link to a backup or to a folder with a backup is followed, and a broken link is named with its target")
  func linked() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.devices.run("mkdir -p drive/Backup Linked MobileSync Broken")
    try sandbox.backUp(to: "drive/Backup/attic/")
    try sandbox.devices.run("ln -s ../drive/Backup/attic Linked/attic; ln -s ../drive/Backup MobileSync/Backup")
    try sandbox.devices.run("ln -s /nowhere/drive Broken/Backup")
    for command in ["inspect", "verify", "plan"] {
      for (folder, path) in [("Linked", "Linked/attic"), ("MobileSync", "MobileSync/Backup/attic")] {
        let outcome = try sandbox.keyhaul("\(command) \(folder) --password-file .bp")
        #expect(outcome.status == 0, "\(outcome)")
        #expect(outcome.errors.contains("\(folder) contains one backup: \(path)\n"), "\(outcome)")
      }
      let brokenLink = try sandbox.keyhaul("\(command) Broken")
      #expect(
        brokenLink.status == 14 && brokenLink.errors.contains("the link \"Backup\" points to \"/nowhere/drive\""),
        "\(brokenLink)")
    }
    // A link back to its own folder leads to no backup.
    try sandbox.devices.run("mkdir Circle; ln -s . Circle/again; ln -s ../Circle Circle/round")
    #expect(try sandbox.keyhaul("inspect Circle").status == 14)
  }

  @Test("No list is suggested for a folder whose only backup has a hidden name")
  func hidden() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.devices.run("mkdir Backup")
    try sandbox.backUp(to: "Backup/.attic/")
    let outcome = try sandbox.keyhaul("inspect Backup")
    #expect(outcome.status == 64 && outcome.errors.hasSuffix("  try: Backup/.attic\n"), "\(outcome)")
  }
}
