import Foundation
import Testing

@testable import keyhaul

@Suite("A folder of several backups")
struct BackupChoiceTests {
  /// `Backup` with a backup of each phone: one directory is called after the device, the other as somebody liked.
  private func world() throws -> (MoveWorld, old: String, new: String) {
    func identifier(_ device: String, _ world: MoveWorld) throws -> String {
      try #require(try world.object(world.succeed("device show \(device) --json"))["udid"] as? String)
    }
    let world = try MoveWorld(named: "two backups in a folder") { world in
      try world.devices.run("mkdir Backup")
      try world.backUp(to: "Backup/\(try identifier("old-phone", world))/")
      try world.backUp("new-phone", to: "Backup/attic/")
    }
    return (world, try identifier("old-phone", world), try identifier("new-phone", world))
  }

  @Test("is answered for by the verbs that look, and names no backup by itself to the others")
  func listed() throws {
    let (world, old, _) = try world()
    let list = try world.succeed("inspect Backup")
    #expect(list.contains("\(old)") && list.contains("attic") && list.contains("new-phone"))
    // A name is there to be typed, and never cut.
    let narrow = try world.devices.run("COLUMNS=60 keyhaul inspect Backup").output
    #expect(narrow.contains("Backup/\(old)\n") && narrow.contains("Backup/attic\n"), "\(narrow)")
    try world.write([1], to: "Backup/attic/Status.plist")
    let entries = try world.object(world.keyhaul("inspect Backup --json").output)["backups"] as? [[String: Any]]
    #expect(entries?.map { $0["state"] as? String } == ["finished", "damaged"])
    for line in [
      "export Backup/ -o x.json", "why Backup --account anna",
      "diff Backup Backup", "rekey Backup", "convert Backup -o x.tar", "restore Backup --to new-phone",
    ] {
      let outcome = try world.keyhaul(
        "\(line) --password-file .bp".replacing("x.tar --password-file .bp", with: "x.tar"))
      #expect(outcome.status == 64, "\(line): \(outcome)")
      #expect(outcome.errors.contains("contains 2 backups; name one of them\n"), "\(line): \(outcome.errors)")
    }
  }

  @Test("proposes one that was finished, and a name only where it can be copied")
  func proposed() throws {
    let (world, old, _) = try world()
    try world.write([1], to: "Backup/\(old)/Status.plist")
    let line = "why Backup --account anna"
    #expect(
      try world.keyhaul(line).errors.hasSuffix("  try: Backup/attic; keyhaul inspect Backup lists them\n"))
    try world.devices.run("mv Backup/attic \"$(printf 'Backup/\\033[31mred')\"")
    let list = try world.keyhaul("inspect Backup").output
    #expect(list.hasSuffix("\nOne of them in full: keyhaul inspect Backup/\(old)\n"), "\(list)")
    #expect(
      try world.keyhaul(line).errors.hasSuffix("  try: ARCHIVE; keyhaul inspect Backup lists them\n"))
  }

  @Test("one of them is chosen by its folder's name or its device's identifier, in capitals or not, never by a part")
  func chosen() throws {
    let (world, old, new) = try world()
    for (choice, device) in [
      ("Backup/\(old)", "old-phone"), ("Backup/attic", "new-phone"), ("Backup/\(new)", "new-phone"),
      ("Backup/\(new.lowercased())/", "new-phone"), ("./Backup/\(new)", "new-phone"),
    ] {
      let document = try world.object(world.succeed("inspect \(choice) --json"))
      #expect((document["device"] as? [String: Any])?["name"] as? String == device, "\(choice)")
      for line in [
        "verify \(choice)", "export \(choice) -o -", "plan \(choice) --to new-phone", "diff \(choice) \(choice)",
        "why \(choice) --item 0", "rekey \(choice) --new-password-file .bp -n", "restore \(choice) --to new-phone -n",
      ] {
        #expect(try world.keyhaul("\(line) --password-file .bp").status == 0, "\(line)")
      }
      try world.succeed("convert \(choice) -o copy.tar --yes")
    }
    #expect(try world.devices.run("cd Backup && keyhaul verify \(new) --quick").status == 0)
    for part in [String(new.prefix(12)), String(old.dropLast()), "att", "atticus", "phone"] {
      let outcome = try world.keyhaul("verify Backup/\(part) --quick")
      #expect(outcome.status == 10 && outcome.errors.hasPrefix("error: Backup/\(part) does not exist\n"), "\(outcome)")
      #expect(outcome.errors.contains("  why: it contains ") && outcome.errors.contains("keyhaul inspect Backup lists"))
    }
    try world.devices.run("cp -R Backup/attic Backup/cellar")
    let several = try world.keyhaul("verify Backup/\(new) --quick")
    #expect(several.status == 64 && several.errors.hasPrefix("error: Backup/\(new) matches several backups\n"))
    #expect(try world.keyhaul("verify Backup/cellar --quick").status == 0)
  }

  @Test("takes no report where the backup is that an identifier chose")
  func output() throws {
    let (world, _, new) = try world()
    let files = try world.files(in: "Backup/attic")
    let outcome = try world.keyhaul("inspect Backup/\(new) -o Backup/attic/report --yes")
    #expect(outcome.status == 64 && outcome.errors.contains("is inside the input"), "\(outcome)")
    #expect(try world.files(in: "Backup/attic") == files)
  }

  @Test("A folder whose only backup is a link is answered for as if the backup stood in it")
  func linked() throws {
    let world = try MoveWorld()
    try world.devices.run("mkdir -p drive/Backup Linked MobileSync Lost")
    try world.backUp(to: "drive/Backup/attic/")
    try world.devices.run("ln -s ../drive/Backup/attic Linked/attic; ln -s ../drive/Backup MobileSync/Backup")
    try world.devices.run("ln -s /nowhere/drive Lost/Backup")
    for verb in ["inspect", "verify", "plan"] {
      for (folder, path) in [("Linked", "Linked/attic"), ("MobileSync", "MobileSync/Backup/attic")] {
        let outcome = try world.keyhaul("\(verb) \(folder) --password-file .bp")
        #expect(outcome.status == 0, "\(outcome)")
        #expect(outcome.errors.contains("\(folder) contains one backup: \(path)\n"), "\(outcome)")
      }
      let lost = try world.keyhaul("\(verb) Lost")
      #expect(lost.status == 14 && lost.errors.contains("the link \"Backup\" points to \"/nowhere/drive\""), "\(lost)")
    }
    // A link in a circle leads to nothing new.
    try world.devices.run("mkdir Circle; ln -s . Circle/again; ln -s ../Circle Circle/round")
    #expect(try world.keyhaul("inspect Circle").status == 14)
  }

  @Test("A list is not proposed for a folder whose only backup has a hidden name")
  func hidden() throws {
    let world = try MoveWorld()
    try world.devices.run("mkdir Backup")
    try world.backUp(to: "Backup/.attic/")
    let outcome = try world.keyhaul("inspect Backup")
    #expect(outcome.status == 64 && outcome.errors.hasSuffix("  try: Backup/.attic\n"), "\(outcome)")
  }
}
