import Foundation
import GRDB
import KeyhaulKit
import TestSupport
import Testing

@testable import keyhaul

@Suite("A backup with a file whose name is not UTF-8")
struct UndecodedNameVerbTests {
  private static let name = Array("Library/abc".utf8) + [0xF5, 0xBA] + Array(".dat".utf8)
  private static let finding =
    "1 entry has a name that is not UTF-8, shown with %F5 for the byte F5; it is \"HomeDomain/Library/abc%F5%BA.dat\""
  private static let text = "odd name"

  private func check(_ world: MoveWorld, _ list: String) throws {
    let verified = try world.keyhaul("verify b")
    #expect(verified.status == 0, "\(verified)")
    #expect(flat(verified.output + verified.errors).contains("\(list): \(Self.finding)"), "\(verified)")
    let inspected = try world.keyhaul("inspect b --json")
    #expect(inspected.status == 0 && inspected.output.contains("\"list-names-not-utf8\""), "\(inspected)")
    let exported = try world.keyhaul("export b --files out")
    #expect(exported.status == 0, "\(exported)")
    #expect(flat(exported.errors).contains("abc%F5%BA.dat\", whose bytes are not UTF-8"), "\(exported)")
    #expect(try world.read("out/HomeDomain/Library/abc%F5%BA.dat") == Array(Self.text.utf8))
    let manifest = String(decoding: try world.read("out/keyhaul-files.jsonl"), as: UTF8.self)
    #expect(manifest.contains("\"relative_path_bytes\":\"\(Self.name.hex)\""), "\(manifest)")
  }

  /// A backup without a password in `b`, with a file whose row and record have the name.
  private func database() throws -> MoveWorld {
    let world = try MoveWorld()
    try world.succeed("backup old-phone -o b/ --no-password -q")
    let bytes = Array(Self.text.utf8)
    let identifier = try Digest.sha1(Array("HomeDomain-".utf8) + Self.name).hex
    let stand = "Library/stand-ins"
    let record = FileRecord(
      relativePath: stand, mode: 0o100644, size: Int64(bytes.count), protectionClass: .fileUntilFirstUserAuthentication)
    var archived = Data(try record.archived())
    archived.replaceSubrange(try #require(archived.range(of: Data(stand.utf8))), with: Self.name)
    let database = try DatabaseQueue(path: world.devices.home.appending(path: "b/Manifest.db").path)
    try database.write { connection in
      try connection.execute(
        sql: "INSERT INTO Files VALUES (?, 'HomeDomain', CAST(? AS TEXT), 1, ?)",
        arguments: [identifier, Data(Self.name), archived])
    }
    try database.close()
    try world.devices.run("mkdir -p b/\(identifier.prefix(2))")
    try world.write(bytes, to: "b/\(identifier.prefix(2))/\(identifier)")
    return world
  }

  /// The file's name in the manifest of an export of a backup's files, and its content.
  private func checkFile(of world: MoveWorld, in backup: String, _ flags: String = "") throws {
    try world.succeed("export \(backup) --files out-\(backup) -q \(flags)")
    #expect(try world.read("out-\(backup)/HomeDomain/Library/abc%F5%BA.dat") == Array(Self.text.utf8), "\(backup)")
    let manifest = String(decoding: try world.read("out-\(backup)/keyhaul-files.jsonl"), as: UTF8.self)
    #expect(manifest.contains("\"relative_path_bytes\":\"\(Self.name.hex)\""), "\(manifest)")
  }

  @Test("Manifest.db is read, and the file itself, by inspect, verify and export")
  func readDatabase() throws {
    let world = try database()
    try check(world, "Manifest.db")
    #expect(try world.succeed("inspect b --tree -v").contains("abc%F5%BA.dat"))
  }

  @Test("Manifest.mbdb is read, and the file itself, by inspect, verify, export and convert")
  func readOldList() throws {
    let backup = try FilesBackup(undecoded: (Self.name, Self.text))
    try check(backup.world, "Manifest.mbdb")
    #expect(try backup.world.read("out/HomeDomain/Library/notes.txt") == Array("notes".utf8))
    try backup.world.succeed("convert b -o c.tar -q")
    try checkFile(of: backup.world, in: "c.tar")
    try backup.world.succeed("export b --domain HomeDomain --path Library/abc%F5%BA.dat -o one -q")
    #expect(try backup.world.read("one") == Array(Self.text.utf8))
  }

  @Test("Every command that takes a backup takes this one, and no copy loses a byte of the name")
  func everyCommand() throws {
    let world = try database()
    try world.succeed("export b --domain HomeDomain --path Library/abc%F5%BA.dat -o one -q")
    #expect(try world.read("one") == Array(Self.text.utf8))
    try world.succeed("convert b -o c.tar -q")
    try checkFile(of: world, in: "c.tar")
    try world.succeed("rekey b --in-place --new-password-file .bp --rounds 1 -q")
    try checkFile(of: world, in: "b", "--password-file .bp")
    try world.succeed("convert b --decrypted -o d/ --password-file .bp -q")
    try checkFile(of: world, in: "d")
    for line in [
      "seal c.tar -q", "verify b --password-file .bp -q", "diff b c.tar --password-file .bp -q",
      "plan b --to new-phone --password-file .bp -q", "why b --item 0 --to new-phone --password-file .bp -q",
      "export b --format json --reveal --password-file .bp -o items.json -q",
      "restore b --to new-phone --password-file .bp --yes -q",
      "rekey b --in-place --password-file .bp --no-password --yes -q",
    ] {
      let outcome = try world.keyhaul(line)
      #expect(outcome.status == 0, "\(line): \(outcome)")
    }
    try world.devices.run("rm -r out-b")
    try checkFile(of: world, in: "b")
  }
}
