import Foundation
import TestSupport
import Testing

@testable import keyhaul

@Suite("Unsupported folder layouts")
struct UnsupportedLayoutTests {
  private static let commands = ["inspect", "verify", "plan", "export -o x.json"]

  private static func propertyList(_ members: String) -> String {
    "<?xml version=\"1.0\"?><plist version=\"1.0\"><dict>\(members)</dict></plist>"
  }

  @Test("A backup of iPhone OS 3 is recognized, and nothing is called damaged", arguments: commands)
  func phoneOS3(command: String) throws {
    let sandbox = try DeviceSandbox()
    let identifier = "3d0d7e5fb2ce288813306e4d4636395e047a3d28"
    func writePlist(_ members: String, to file: String) throws {
      try Data(Self.propertyList(members).utf8).write(to: sandbox.home.appending(path: "old/\(file)"))
    }
    try sandbox.run("mkdir old; printf hello > old/\(identifier).mddata; printf x > old/\(identifier).mdinfo")
    try writePlist(
      "<key>AuthSignature</key><data>AAAA</data><key>AuthVersion</key><string>2.0</string><key>IsEncrypted</key><false/>"
        + "<key>Data</key><data>AAAA</data>", to: "Manifest.plist")
    try writePlist(
      "<key>Device Name</key><string>Made Up</string><key>Product Version</key><string>3.1.3</string>",
      to: "Info.plist")
    try writePlist("<key>Backup Success</key><true/>", to: "Status.plist")
    let outcome = try sandbox.run("keyhaul \(command) old")
    #expect(outcome.status == 14 && outcome.output.isEmpty, "\(outcome)")
    #expect(unwrapped(outcome.errors).contains("a backup of iPhone OS 3 or earlier, in a layout that is not read"))
    #expect(!outcome.errors.contains("damaged") && !outcome.errors.contains("changed"), "\(outcome)")
    let list = try sandbox.run("keyhaul inspect old --format ndjson").output
    #expect(list.contains("\"state\":null") && list.contains("\"id\":\"refused\""), "\(list)")
  }

  @Test("A backup without a manifest is called unfinished, with its known details")
  func unfinished() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.backUp(to: "b/")
    try sandbox.devices.run("rm b/Manifest.plist b/Manifest.db b/Keyhaul.seal")
    let status = Self.propertyList("<key>SnapshotState</key><string>uploading</string>")
    try sandbox.write(Array(status.utf8), to: "b/Status.plist")
    for command in ["inspect b", "plan b", "export b -o x.json"] {
      let outcome = try sandbox.keyhaul(command)
      #expect(outcome.status == 13 && outcome.errors.hasPrefix("error: b is an unfinished backup\n"), "\(outcome)")
      let errors = unwrapped(outcome.errors)
      #expect(errors.contains("it has no Manifest.plist, which is needed to get its keys"))
      #expect(errors.contains("Info.plist says \"old-phone\"") && errors.contains("Status.plist says \"uploading\""))
      #expect(errors.contains("1 payload is in it") && !errors.contains("named after the device"))
    }
    let verified = try sandbox.keyhaul("verify b")
    #expect(
      verified.status == 13 && unwrapped(verified.output).contains("Status.plist says \"uploading\""), "\(verified)")
  }

  @Test("Files under their original names are recognized, and the keychain is not called lost")
  func filesByDomain() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o b/ --no-password -q")
    try sandbox.removeSeal("b")
    try sandbox.devices.run("mkdir b/KeychainDomain; mv b/51/51a4* b/KeychainDomain/keychain-backup.plist; rmdir b/51")
    let finding = "the files are there under their own names, such as KeychainDomain/keychain-backup.plist"
    let inspected = try sandbox.keyhaul("inspect b")
    #expect(inspected.status == 3 && unwrapped(inspected.errors).contains(finding), "\(inspected)")
    let verified = try sandbox.keyhaul("verify b")
    #expect(verified.status == 13 && unwrapped(verified.output).contains(finding), "\(verified)")
    #expect(!unwrapped(verified.output).contains("is lost"), "\(verified)")
    #expect(
      unwrapped(verified.output).contains("its files are under their own names, in a layout that Keyhaul does not read")
    )
  }

  @Test("A packed MobileSync folder is read if it contains one backup, and rejected if it contains two")
  func archives() throws {
    let sandbox = try PhoneSandbox()
    try sandbox.backUp(to: "b/")
    try sandbox.devices.run(
      """
      mkdir -p MobileSync/Backup && cp -R b MobileSync/Backup/one && tar czf deep.tar.gz MobileSync
      cp -R b MobileSync/Backup/two && tar cf two.tar MobileSync
      """)
    for command in ["inspect --list", "verify", "plan"] {
      let outcome = try sandbox.keyhaul("\(command) deep.tar.gz --password-file .bp")
      #expect(outcome.status == 0, "\(outcome)")
    }
    try sandbox.succeed("convert deep.tar.gz -o unpacked/ -q")
    try sandbox.succeed("verify unpacked --password-file .bp")
    // A change in place keeps the folders in the tar file.
    try sandbox.succeed("rekey deep.tar.gz --password-file .bp --new-password-file .bp --rounds 3 -q --in-place")
    try sandbox.succeed("item delete deep.tar.gz --password-file .bp --service chat.example --yes -q --in-place")
    try sandbox.succeed("verify deep.tar.gz --password-file .bp")
    #expect(try sandbox.devices.run("tar tf deep.tar.gz").output.contains("MobileSync/Backup/one/Manifest.plist\n"))
    for command in Self.commands {
      let outcome = try sandbox.keyhaul("\(command) two.tar --password-file .bp")
      #expect(outcome.status == 14, "\(outcome)")
      #expect(outcome.errors.hasPrefix("error: two.tar cannot be read: it contains several backups\n"), "\(outcome)")
      #expect(
        unwrapped(outcome.errors).contains("\"MobileSync/Backup/one\" and \"MobileSync/Backup/two\""), "\(outcome)")
      #expect(!outcome.errors.contains("make a new backup"))
    }
  }
}
