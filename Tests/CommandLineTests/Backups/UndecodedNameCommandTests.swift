import Foundation
import GRDB
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

@Suite("Backups with file names that are not UTF-8")
struct UndecodedNameCommandTests {
  private static let path = Array("Library/abc".utf8) + [0xF5, 0xBA] + Array(".dat".utf8)
  private static let finding =
    "1 entry has a name that is not UTF-8, shown with %F5 for the byte F5; it is \"HomeDomain/Library/abc%F5%BA.dat\""
  /// The content of the file.
  private static let content = "odd name"

  /// Checks the reports about the backup `b`, and the file in its export.
  private func checkBackup(in sandbox: PhoneSandbox, manifest: String) throws {
    let verified = try sandbox.keyhaul("verify b")
    #expect(verified.status == 0, "\(verified)")
    #expect(unwrapped(verified.output + verified.errors).contains("\(manifest): \(Self.finding)"), "\(verified)")
    let inspected = try sandbox.keyhaul("inspect b --json")
    #expect(inspected.status == 0 && inspected.output.contains("\"list-names-not-utf8\""), "\(inspected)")
    let exported = try sandbox.keyhaul("export b --files out")
    #expect(exported.status == 0, "\(exported)")
    #expect(unwrapped(exported.errors).contains("abc%F5%BA.dat\", whose bytes are not UTF-8"), "\(exported)")
    #expect(try sandbox.read("out/HomeDomain/Library/abc%F5%BA.dat") == Array(Self.content.utf8))
    let files = String(decoding: try sandbox.read("out/keyhaul-files.jsonl"), as: UTF8.self)
    #expect(files.contains("\"relative_path_bytes\":\"\(Self.path.hex)\""), "\(files)")
  }

  /// Returns a sandbox with an unencrypted backup `b`. In `Manifest.db`, a row and its file record have the path.
  private func sandboxWithRow() throws -> PhoneSandbox {
    let sandbox = try PhoneSandbox()
    try sandbox.succeed("backup old-phone -o b/ --no-password -q")
    let bytes = Array(Self.content.utf8)
    let identifier = try Digest.sha1(Array("HomeDomain-".utf8) + Self.path).hex
    // A file record can be created only with a decoded path, so the bytes of a path of equal length are replaced.
    let placeholder = "Library/stand-ins"
    let record = FileRecord(
      relativePath: placeholder, mode: 0o100644, size: Int64(bytes.count),
      protectionClass: .fileUntilFirstUserAuthentication)
    var archived = Data(try record.archived())
    archived.replaceSubrange(try #require(archived.range(of: Data(placeholder.utf8))), with: Self.path)
    let database = try DatabaseQueue(path: sandbox.devices.home.appending(path: "b/Manifest.db").path)
    try database.write { connection in
      try connection.execute(
        sql: "INSERT INTO Files VALUES (?, 'HomeDomain', CAST(? AS TEXT), 1, ?)",
        arguments: [identifier, Data(Self.path), archived])
    }
    try database.close()
    try sandbox.devices.run("mkdir -p b/\(identifier.prefix(2))")
    try sandbox.write(bytes, to: "b/\(identifier.prefix(2))/\(identifier)")
    return sandbox
  }

  /// Exports a backup's files, and checks the name and the content of the file.
  private func checkFile(in backup: String, of sandbox: PhoneSandbox, flags: String = "") throws {
    try sandbox.succeed("export \(backup) --files out-\(backup) -q \(flags)")
    #expect(try sandbox.read("out-\(backup)/HomeDomain/Library/abc%F5%BA.dat") == Array(Self.content.utf8), "\(backup)")
    let manifest = String(decoding: try sandbox.read("out-\(backup)/keyhaul-files.jsonl"), as: UTF8.self)
    #expect(manifest.contains("\"relative_path_bytes\":\"\(Self.path.hex)\""), "\(manifest)")
  }

  @Test("Inspect, verify and export read a file whose name in Manifest.db is not UTF-8")
  func readDatabase() throws {
    let sandbox = try sandboxWithRow()
    try checkBackup(in: sandbox, manifest: "Manifest.db")
    #expect(try sandbox.succeed("inspect b --tree -v").contains("abc%F5%BA.dat"))
  }

  @Test("Inspect, verify, export and convert read a file whose name in Manifest.mbdb is not UTF-8")
  func readOldManifest() throws {
    let backup = try BackupWithFiles(undecoded: (Self.path, Self.content))
    try checkBackup(in: backup.sandbox, manifest: "Manifest.mbdb")
    #expect(try backup.sandbox.read("out/HomeDomain/Library/notes.txt") == Array("notes".utf8))
    try backup.sandbox.succeed("convert b -o c.tar -q")
    try checkFile(in: "c.tar", of: backup.sandbox)
    try backup.sandbox.succeed("export b --domain HomeDomain --path Library/abc%F5%BA.dat -o one -q")
    #expect(try backup.sandbox.read("one") == Array(Self.content.utf8))
  }

  @Test("Every command accepts file names that are not UTF-8, and copies keep every byte of them")
  func everyCommand() throws {
    let sandbox = try sandboxWithRow()
    try sandbox.succeed("export b --domain HomeDomain --path Library/abc%F5%BA.dat -o one -q")
    #expect(try sandbox.read("one") == Array(Self.content.utf8))
    try sandbox.succeed("convert b -o c.tar -q")
    try checkFile(in: "c.tar", of: sandbox)
    try sandbox.succeed("rekey b --in-place --new-password-file .bp --rounds 1 -q")
    try checkFile(in: "b", of: sandbox, flags: "--password-file .bp")
    try sandbox.succeed("convert b --decrypted -o d/ --password-file .bp -q")
    try checkFile(in: "d", of: sandbox)
    for line in [
      "seal c.tar -q", "verify b --password-file .bp -q", "diff b c.tar --password-file .bp -q",
      "plan b --to new-phone --password-file .bp -q", "why b --item 0 --to new-phone --password-file .bp -q",
      "export b --format json --reveal --password-file .bp -o items.json -q",
      "restore b --to new-phone --password-file .bp --yes -q",
      "rekey b --in-place --password-file .bp --no-password --yes -q",
    ] {
      let outcome = try sandbox.keyhaul(line)
      #expect(outcome.status == 0, "\(line): \(outcome)")
    }
    try sandbox.devices.run("rm -r out-b")
    try checkFile(in: "b", of: sandbox)
  }
}
