import Foundation
import Testing

@testable import keyhaul

@Suite("The folders in which other programs keep backups")
struct KnownBackupFolderTests {
  private static let finderFolder = "Library/Application Support/MobileSync/Backup"
  private static let udid = "00008110-0000000000000001"

  /// Returns a sandbox with a backup below this path in the user's home folder.
  private func sandbox(withBackupIn path: String) throws -> PhoneSandbox {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    try sandbox.devices.run("mkdir -p '\(path)' && mv b '\(path)/\(Self.udid)'")
    return sandbox
  }

  @Test(
    "Without an argument, inspect lists the backups of each program",
    arguments: [
      finderFolder, "Apple/MobileSync/Backup", "AppData/Roaming/Apple Computer/MobileSync/Backup", "MobileSync/Backup",
      "phone backups",
    ])
  func listed(folder: String) throws {
    let sandbox = try sandbox(withBackupIn: folder)
    let outcome = try sandbox.keyhaul("inspect")
    #expect(outcome.status == 0, "\(outcome)")
    #expect(outcome.output.contains("  \(sandbox.home.path)/\(folder)/\(Self.udid)\n"), "\(outcome)")
    let document = try sandbox.object(sandbox.succeed("inspect --json"))
    #expect(document["format"] as? String == "backup-list/1" && (document["backups"] as? [Any])?.count == 1)
  }

  @Test("Without an argument, plan and verify list the backups and require one of them", arguments: ["plan", "verify"])
  func named(command: String) throws {
    let sandbox = try sandbox(withBackupIn: Self.finderFolder)
    let outcome = try sandbox.keyhaul(command)
    let path = "\(sandbox.home.path)/\(Self.finderFolder)/\(Self.udid)"
    #expect(outcome.status == 64 && outcome.output.contains("  \(path)\n"), "\(outcome)")
    #expect(outcome.errors.hasPrefix("error: keyhaul \(command) needs a backup"), "\(outcome)")
    #expect(unwrapped(outcome.errors).contains("1 backup was found"), "\(outcome)")
    #expect(outcome.output.contains("\nOne of them in full: keyhaul \(command) '\(path)'\n"), "\(outcome)")
    let withJSON = try sandbox.keyhaul("\(command) --json")
    #expect(withJSON.status == 64 && withJSON.output.isEmpty, "\(withJSON)")
  }

  @Test("If there are no backups, the message names the folders that were searched")
  func none() throws {
    let sandbox = try DeviceSandbox()
    for command in ["inspect", "plan", "verify"] {
      let outcome = try sandbox.run("keyhaul \(command)")
      #expect(outcome.status == 64 && outcome.output.isEmpty, "\(outcome)")
      #expect(
        unwrapped(outcome.errors).contains("there are no backups in \(sandbox.home.path)/\(Self.finderFolder), "),
        "\(outcome)")
    }
    #expect(try sandbox.run("HOME= keyhaul inspect").status == 64)
  }

  @Test("On a macOS or Windows volume, only the users' backup folders are searched")
  func volumes() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    try sandbox.devices.run(
      """
      win='Windows/Users/anna/AppData/Roaming/Apple Computer/MobileSync/Backup'
      mkdir -p "$win" Windows/Users/ben/Apple/MobileSync/Backup 'Windows/Program Files' 'mac/Users/eve/\(Self.finderFolder)'
      cp -R b "$win/one"; cp -R b Windows/Users/ben/Apple/MobileSync/Backup/two; cp -R b 'Windows/Program Files/three'
      cp -R b 'mac/Users/eve/\(Self.finderFolder)/four'; cp -R b mac/five
      """)
    func pathsOfBackups(in folder: String) throws -> [String] {
      try sandbox.keyhaul("inspect '\(folder)' --format ndjson").output.split(separator: "\n").compactMap {
        try sandbox.object(String($0))["path"] as? String
      }
    }
    #expect(
      try pathsOfBackups(in: "Windows/") == [
        "Windows/Users/anna/AppData/Roaming/Apple Computer/MobileSync/Backup/one",
        "Windows/Users/ben/Apple/MobileSync/Backup/two",
      ])
    #expect(try pathsOfBackups(in: "mac") == ["mac/Users/eve/\(Self.finderFolder)/four"])
    // A user's folder can be given too, and a volume with one backup can be given in place of that backup.
    #expect(try pathsOfBackups(in: "Windows/Users/ben") == ["Windows/Users/ben/Apple/MobileSync/Backup/two"])
    #expect(try sandbox.keyhaul("verify mac --password-file .bp").output.contains("/four is intact"))
    // Other folders are searched completely.
    #expect(try pathsOfBackups(in: "Windows/Program Files") == ["Windows/Program Files/three"])
  }

  @Test("A search of a folder ends after a maximum number of names, and reports this")
  func limit() throws {
    let sandbox = try PhoneSandbox(backedUpTo: "b/")
    try sandbox.devices.run("mkdir -p many/z; for n in 1 2 3 4 5 6; do : > many/$n; done; cp -R b many/z/backup")
    let path = sandbox.home.appending(path: "many").path
    let completeSearch = BackupFinder(path)
    #expect(try completeSearch.next()?.fault == nil && completeSearch.next() == nil)
    // The folder itself has seven names. The backup would be the eighth.
    let limitedSearch = BackupFinder(path, limit: 7)
    let fault = try #require(try limitedSearch.next()?.fault)
    #expect(fault.status == .refused && fault.message.hasPrefix("stopped looking in "))
    #expect(try limitedSearch.next() == nil)
  }
}
