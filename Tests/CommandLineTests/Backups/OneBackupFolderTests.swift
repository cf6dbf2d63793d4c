import Foundation
import Testing

@testable import keyhaul

@Suite("Arguments that lead to a backup")
struct OneBackupFolderTests {
  private func sandbox() throws -> PhoneSandbox {
    try PhoneSandbox(named: "a folder with one backup") { sandbox in
      try sandbox.devices.run("mkdir -p Folder/inner drive Linked")
      try sandbox.backUp(to: "Folder/inner/attic/")
      try sandbox.devices.run("cp -R Folder/inner/attic drive/attic; ln -s ../drive/attic Linked/attic")
    }
  }

  /// Runs one of `lines` with an argument in place of FOLDER.
  private func run(_ line: String, with argument: String, in sandbox: PhoneSandbox) throws -> BuiltProgram.Outcome {
    try sandbox.keyhaul("\(line.replacing("FOLDER", with: argument)) --password-file .bp --yes")
  }

  private static let lines = [
    "inspect FOLDER --list", "verify FOLDER", "plan FOLDER", "plan FOLDER --to new-phone", "export FOLDER -o x.json",
    "why FOLDER --item 0", "diff FOLDER drive/attic", "item find FOLDER", "rekey FOLDER --new-password-file .bp -n",
    "restore FOLDER --to new-phone -n", "inspect FOLDER --format html -o x.html",
  ]

  @Test("A folder with one backup, or with one link to a backup, stands for that backup", arguments: lines)
  func folder(line: String) throws {
    let sandbox = try sandbox()
    for (folder, path) in [("Folder", "Folder/inner/attic"), ("Linked", "Linked/attic")] {
      let outcome = try run(line, with: folder, in: sandbox)
      #expect(outcome.status == 0, "\(outcome)")
      #expect(outcome.errors.contains("\(folder) contains one backup: \(path)\n"), "\(outcome)")
    }
  }

  @Test("A file of a backup leads to the backup", arguments: lines)
  func file(line: String) throws {
    let sandbox = try sandbox()
    for file in ["Manifest.plist", "Manifest.db", "Info.plist", PhoneSandbox.keychainPath] {
      let path = "./drive/attic/\(file)"
      let outcome = try run(line, with: path, in: sandbox)
      #expect(outcome.status == 0, "\(outcome)")
      #expect(outcome.errors.contains("\(path) is a file of the backup ./drive/attic\n"), "\(outcome)")
    }
    #expect(try sandbox.devices.run("cd drive/attic && keyhaul verify Manifest.db --quick").status == 0)
    // A file with such a name is not treated as a file of a backup if no other file of a backup is next to it.
    try sandbox.devices.run("mkdir alone; cp drive/attic/Info.plist alone")
    #expect(try !sandbox.keyhaul("inspect alone/Info.plist").errors.contains("is a file of the backup"))
  }

  @Test("With --json, a folder always results in a list, even if it contains one backup")
  func document() throws {
    let sandbox = try sandbox()
    for command in ["inspect", "plan", "verify"] {
      let document = try sandbox.object(sandbox.keyhaul("\(command) Folder --password-file .bp --json").output)
      #expect(document["format"] as? String == "backup-list/1" && document["folder"] as? String == "Folder")
    }
  }

  @Test("A link next to a backup is not followed, and is named with its target")
  func link() throws {
    let sandbox = try sandbox()
    try sandbox.devices.run("cp -R drive/attic Linked/own; ln -s /nowhere Linked/gone")
    let outcome = try sandbox.keyhaul("inspect Linked")
    #expect(outcome.output.contains("\n1 backup: 1 with exit code 0.\n") || outcome.errors.contains("Linked/own"))
    let list = try sandbox.keyhaul("inspect Linked --format csv")
    #expect(
      list.errors.contains(
        "Links that were not followed: Linked/attic leads to ../drive/attic and Linked/gone leads to /nowhere.\n"),
      "\(list)")
  }

  @Test("An error names a missing path among several, but not an argument that may be a password")
  func missing() throws {
    let sandbox = try sandbox()
    for path in ["Folder/nothing", "nothing.tar.gz", "./nothing"] {
      let outcome = try sandbox.keyhaul("inspect drive/attic \(path)")
      #expect(outcome.status == 10 && outcome.errors.hasPrefix("error: \(path) does not exist\n"), "\(outcome)")
    }
    for argument in ["hunter2", "/hunter2", "hun/ter2"] {
      let outcome = try sandbox.keyhaul("inspect drive/attic \(argument)")
      #expect(outcome.status == 64 && !outcome.errors.contains("ter2"), "\(outcome)")
    }
  }
}
